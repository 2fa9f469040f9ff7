"""Nodes, pods and workloads as the API server would show them, with only what a test is about spelled out."""

from __future__ import annotations

import itertools
from typing import Any

from gpushare.domain.manifests import Manifest

TIME = "2026-01-01T00:00:00Z"
NOW = 1767225600.0
"""The same moment in seconds."""
_numbers = itertools.count(1)


def node(
    name: str = "gpu01",
    *,
    labels: dict[str, str] | None = None,
    taints: list[dict[str, Any]] | None = None,
    conditions: dict[str, str] | None = None,
    unschedulable: bool = False,
    **allocatable: str,
) -> Manifest:
    """A Node; `conditions` maps types to statuses, further keywords are resources with `_` for `/` and `.`."""
    resources = {"cpu": "8", "memory": "64Gi", "pods": "110"} | {
        _resource(key): value for key, value in allocatable.items()
    }
    made: Manifest = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": _metadata(name, "", labels),
        "spec": {},
        "status": {"allocatable": resources, "capacity": resources},
    }
    if taints:
        made["spec"]["taints"] = taints
    if unschedulable:
        made["spec"]["unschedulable"] = True
    if conditions:
        made["status"]["conditions"] = [{"type": kind, "status": status} for kind, status in conditions.items()]
    return made


def pod(
    name: str = "",
    *,
    node: str = "",
    phase: str = "Pending",
    ready: bool = False,
    labels: dict[str, str] | None = None,
    owner: Manifest | None = None,
    terminating: bool = False,
    spec: dict[str, Any] | None = None,
    age: int = 0,
    **requests: str,
) -> Manifest:
    """A Pod; `age` counts in seconds, further keywords are requests of its one container."""
    number = next(_numbers)
    container: dict[str, Any] = {"name": "main", "image": "image"}
    if requests:
        container["resources"] = {"requests": {_resource(key): value for key, value in requests.items()}}
    made: Manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(name or f"pod-{number}", "default", labels),
        "spec": {"containers": [container], **(spec or {})},
        "status": {"phase": "Running" if ready else phase},
    }
    made["metadata"]["creationTimestamp"] = f"2025-12-31T23:59:{59 - age:02d}Z"
    if node:
        made["spec"]["nodeName"] = node
    if ready:
        made["status"]["conditions"] = [{"type": "Ready", "status": "True", "lastTransitionTime": TIME}]
    if terminating:
        made["metadata"]["deletionTimestamp"] = TIME
    if owner is not None:
        made["metadata"]["ownerReferences"] = [reference(owner)]
    return made


def reference(owner: Manifest) -> dict[str, Any]:
    """The owner reference of a controller."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def workload(
    kind: str, name: str, *, spec: dict[str, Any] | None = None, pod_spec: dict[str, Any] | None = None
) -> Manifest:
    """A DaemonSet, Deployment, ReplicaSet or Job whose pods have the label `app` with its name."""
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": _metadata(name, "default", None) | {"generation": 1},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "image"}], **(pod_spec or {})},
            },
            **(spec or {}),
        },
        "status": {},
    }


def _metadata(name: str, namespace: str, labels: dict[str, str] | None) -> dict[str, Any]:
    number = next(_numbers)
    made = {
        "name": name,
        "uid": f"uid-{name}-{number}",
        "resourceVersion": str(number),
        "creationTimestamp": TIME,
        "labels": labels or {},
    }
    return made | ({"namespace": namespace} if namespace else {})


def _resource(keyword: str) -> str:
    return {"gpu": "nvidia.com/gpu", "ephemeral": "ephemeral-storage"}.get(keyword, keyword)
