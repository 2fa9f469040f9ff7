"""The controller process: kopf watches, one loop of passes, each from snapshot to plan to effects.

Belongs here: everything that needs kopf. Does not belong here: what the cluster should look like, which is `plan`.
"""
