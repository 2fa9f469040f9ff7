"""What the cluster should look like: a snapshot goes in, a plan of objects, configurations, labels and status comes out.

Belongs here: pure decisions of the controller. Does not belong here: YAML, clients, clocks.
"""
