"""What a node offers: inventory and configuration become pools, pools become answers to the kubelet.

Belongs here: pure functions on `domain` values. Does not belong here: gRPC messages, files, the order in which
servers start.
"""
