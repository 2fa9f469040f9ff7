"""Simulated nodes: a kubelet with a true device manager, pods that run our own commands, logs.

Belongs here: what a kubelet does. Does not belong here: knowledge of GPUs or of this project's configuration.
"""
