"""The door to the NVIDIA driver: one port, the real library and a simulated one behind it.

Belongs here: reading devices, waiting for events. Does not belong here: what a failure means for a share.
"""
