"""The door to the kubelet: gRPC of the device plugin and pod resources protocols, and nothing else speaks gRPC.

Belongs here: stubs, servers, registration and its life cycle, both sides of each protocol (a simulated kubelet needs the
other one). Does not belong here: what is offered, what is answered. No protobuf message leaves the package.

The stubs `*_pb2*` are generated from the `.proto` files by `scripts/generate_stubs.sh`.
"""
