"""The node agent: discovers GPUs, serves them to the kubelet, reports in a GPUNode.

Belongs here: the order of things on a node and their races. Does not belong here: what follows from a configuration
(`sharing`), or how the kubelet is spoken to (`kubelet`).
"""
