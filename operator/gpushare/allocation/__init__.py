"""Which devices a request gets. A library of its own, usable without Kubernetes.

Belongs here: topology, policies, preferences among shares. Does not belong here: how devices were found or are handed
over.
"""
