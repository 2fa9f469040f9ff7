"""The door to the machine: files, /proc, /sys, device nodes, CDI files, the state file, subprocesses.

Belongs here: reading and writing below a given root. Does not belong here: decisions about what is found.
"""
