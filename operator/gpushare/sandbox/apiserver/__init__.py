"""An embedded Kubernetes API server, usable without the rest: kubectl, kopf and the Python client talk to it.

Belongs here: the API as a real server answers it. Does not belong here: controllers, the scheduler, kubelets, GPUs.
"""
