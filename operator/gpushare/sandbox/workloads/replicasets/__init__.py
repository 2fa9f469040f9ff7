"""ReplicaSets: so many pods of one template.

Belongs here: what the ReplicaSet controller of Kubernetes decides and does. Does not belong here: rollouts, which are the
Deployment's.
"""
