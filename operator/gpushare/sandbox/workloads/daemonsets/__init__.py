"""DaemonSets: one pod a node that fits, renewed a few at a time, with a history that `kubectl rollout` reads.

Belongs here: what the DaemonSet controller of Kubernetes decides and does. Does not belong here: binding, which the
scheduler does for these pods as for all others.
"""
