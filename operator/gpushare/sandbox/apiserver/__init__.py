"""An embedded Kubernetes API server, usable without the rest: kubectl, kopf and the Python client talk to it.

Belongs here: the API as a real server answers it, and what of a control plane no API server can be without (garbage
collection, the life of namespaces). Does not belong here: controllers, the scheduler, kubelets, GPUs.

    server      sockets, TLS, HTTP               -> requests, statuses    requests, answers and refusals as values
    api         who is it, may they, what about  -> access                tokens, roles, reviews
    handling    each verb                        -> protocol              JSON, protobuf, Tables, discovery, OpenAPI
                                                 -> objects               schemas, decoding, defaults
                                                 -> patching              patches, server-side apply, field owners
                                                 -> validation            what is refused
    storage     objects, versions, watchers      <- upkeep                what happens without a request
    resources   the kinds that are served        <- kinds                 those that are built in

`objects`, `patching`, `validation` and `tables` are pure: they know one object at a time, and nothing of requests.
"""
