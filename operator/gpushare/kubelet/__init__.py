"""The door to the kubelet: gRPC of the device plugin and pod resources protocols, and nothing else speaks gRPC.

Belongs here: stubs, servers, registration and its life cycle. Does not belong here: what is offered, what is
answered.
"""
