"""The volume with which a pod reaches the API server: token, certificate authority, namespace. Pure.

A real API server adds it to every pod at admission; one that does not gets it added here, so that a pod's programs find
their credentials either way. Called by the pod's worker.
"""

from __future__ import annotations

import copy
from typing import Any

from gpushare.domain.manifests import Manifest

PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
ROOT_CA = "kube-root-ca.crt"
_TOKEN_SECONDS = 3607
"""What the admission plugin asks for, and a sign by which API servers know it."""


def with_api_access(pod: Manifest) -> Manifest:
    """The pod, with the volume and its mounts in every container that has none; itself where nothing is missing."""
    spec = pod["spec"]
    if spec.get("automountServiceAccountToken") is False:
        return pod
    containers = [*(spec.get("initContainers") or ()), *spec["containers"]]
    if all(_has_mount(container) for container in containers):
        return pod
    pod = copy.deepcopy(pod)
    spec = pod["spec"]
    name = "kube-api-access"
    spec["volumes"] = [*(spec.get("volumes") or ()), _volume(name)]
    for container in [*(spec.get("initContainers") or ()), *spec["containers"]]:
        if not _has_mount(container):
            mount = {"name": name, "mountPath": PATH, "readOnly": True}
            container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]
    return pod


def _has_mount(container: dict[str, Any]) -> bool:
    return any(mount["mountPath"] == PATH for mount in container.get("volumeMounts") or ())


def _volume(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "projected": {
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
                {"configMap": {"name": ROOT_CA, "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
            ]
        },
    }
