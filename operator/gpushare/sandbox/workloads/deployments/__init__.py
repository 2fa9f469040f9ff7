"""Deployments: ReplicaSets that grow and shrink against each other, so that a new template comes without a gap.

Belongs here: what the Deployment controller of Kubernetes decides and does. Does not belong here: pods, which are the
ReplicaSets'.
"""
