"""Jobs: pods that end, until enough of them have.

Belongs here: what the Job controller of Kubernetes decides and does. Does not belong here: indexed completion, success
and failure policies, which nothing in the sandbox uses. Unlike the real one it puts no finalizer on its pods: a pod that
was counted stays counted in the status.
"""
