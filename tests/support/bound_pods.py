"""Pods that a scheduler of fractions has placed on a node, as an API server tells them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

from gpushare import names
from gpushare.domain.fractions import Decision, Dialect, Grant
from gpushare.domain.manifests import Manifest
from gpushare.sharing.fractions import REQUESTED

NODE = "gpu01"
UUIDS = tuple(f"GPU-{index:08x}-0000-0000-0000-000000000000" for index in range(4))
_VERSIONS = count(100)

Containers = Mapping[str, tuple[Grant, ...]]


def grant(gpu: int = 0, memory_mib: int = 3000, cores: int = 30, units: int = 0) -> Grant:
    """A part of one of four GPUs."""
    return Grant(UUIDS[gpu], memory_mib, cores, units)


def units(count: int, gpu: int = 0) -> Grant:
    """So many GiB of one of them."""
    return Grant(UUIDS[gpu], count * 1024, 0, count)


def decision(uid: str, containers: Containers, *, shape: str = "s", dialect: Dialect = Dialect.HAMI) -> Decision:
    """What the scheduler decided for a pod."""
    return Decision(pod_uid=uid, dialect=dialect, shape=shape, containers=containers)


def asking(name: str, amount: int, dialect: Dialect = Dialect.HAMI, **fields: Any) -> dict[str, Any]:
    """A container that asks for so many ids."""
    limits = {"limits": {REQUESTED[dialect]: str(amount)}}
    return {"name": name, "image": "nginx:1.29", "resources": limits, **fields}


def bound(
    name: str,
    containers: Containers,
    *,
    shape: str = "s",
    dialect: Dialect = Dialect.HAMI,
    inits: tuple[str, ...] = (),
    status: Mapping[str, Any] | None = None,
    annotation: str | None = None,
) -> Manifest:
    """A pod on the node with the scheduler's decision in its annotations.

    Args:
        name: of the pod; its uid follows from it.
        containers: what each gets, and so how many ids it asks for.
        shape: of the decision.
        dialect: of both.
        inits: which containers end before the others begin.
        status: nothing yet where None.
        annotation: in the place of the decision.
    """
    uid = f"uid-{name}"
    text = decision(uid, containers, shape=shape, dialect=dialect).to_annotation() if annotation is None else annotation
    sizes = {key: sum(each.units or 1 for each in grants) for key, grants in containers.items()}
    asked = {key: asking(key, size, dialect) for key, size in sizes.items()}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": uid,
            "resourceVersion": str(next(_VERSIONS)),
            "annotations": {names.ANNOTATION_DECISION: text} if text else {},
        },
        "spec": {
            "nodeName": NODE,
            "initContainers": [asked[key] for key in asked if key in inits],
            "containers": [asked[key] for key in asked if key not in inits],
        },
        "status": dict(status or {"phase": "Pending"}),
    }
