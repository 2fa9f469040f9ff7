"""The controller process: kopf watches, one loop of passes, each from snapshot to plan to effects. And its undoing, `cleanup`.

Belongs here: everything that needs kopf, and the effects of a plan on the cluster. Does not belong here: what the cluster
should look like, which is `plan`, and how an object reads, which is `render`.
"""
