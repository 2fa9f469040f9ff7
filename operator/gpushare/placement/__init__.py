"""Where a pod fits: requests for fractions of GPUs, nodes with what is free on them, policies.

Belongs here: pure decisions of the scheduler. Does not belong here: HTTP, pods as the API server sends them.
"""
