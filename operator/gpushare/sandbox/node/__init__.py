"""Simulated nodes: a kubelet with a true device manager, pods that run our own commands, logs.

Belongs here: what a kubelet and a container runtime do, over the API and over the plugins' sockets only. Does not
belong here: knowledge of GPUs or of this project's configuration (`transcripts` alone knows what famous images print).

Start with `fleet.NodeFleet`; a fleet of one node is one node.
"""
