"""The door to the machine: files, /proc, /sys, device nodes, the driver's files, CDI specifications, the state file.

Belongs here: reading and writing below a given root. Does not belong here: decisions about what is found.
"""
