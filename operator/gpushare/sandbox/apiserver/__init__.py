"""An embedded Kubernetes API server, usable without the rest: kubectl, kopf and the Python client talk to it.

Belongs here: the API as a real server answers it, and what of a control plane no API server can be without (garbage
collection, the life of namespaces). Does not belong here: controllers, the scheduler, kubelets, GPUs.

A request goes `server` (sockets) -> `api` (who, may they) -> `objects` (which verb) -> `reading`, `watching`, `writing`,
`deleting`, `subresources` -> `storage`. Modules that know one thing about objects (`patching`, `serverside_apply`,
`decoding`, `defaults`, `validation`, `crds`, `tables`, ...) are pure and know nothing of requests.
"""
