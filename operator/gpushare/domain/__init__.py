"""Values that every other package speaks in: devices, shares, pools, nodes, conditions, manifests.

Belongs here: frozen data and the algebra on it. Does not belong here: anything that reads a clock, a file, a socket
or a cluster, and anything that decides what ought to be.
"""
