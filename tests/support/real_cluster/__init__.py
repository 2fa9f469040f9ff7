"""A real Kubernetes of one node out of plain processes, in namespaces of its own: started and stopped by a test run.

Belongs here: where the programs come from, how they are configured, started and stopped. Does not belong here: what is
proved with them (`tests/cluster`), and what the images hold (`support.images`). `docs/real-cluster.md` tells the rest.
"""
