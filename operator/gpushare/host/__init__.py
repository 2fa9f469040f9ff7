"""The door to the machine: files, /proc, /sys, device nodes, the state file.

Belongs here: reading and writing below a given root. Does not belong here: decisions about what is found.
"""
