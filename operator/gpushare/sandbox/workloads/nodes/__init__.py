"""Nodes as the cluster sees them: registered, tainted by their state, given up when they fall silent, cleaned up after.

Belongs here: what the node controllers of Kubernetes decide and do. Does not belong here: what a kubelet says of itself.
"""
