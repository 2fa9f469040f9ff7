"""Which pods wait for a node, in which order, and which changes could help one of them. Pure. Used by the process."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.scheduling import amounts, taints
from gpushare.sandbox.scheduling.configuration import DEFAULT_NAME


def is_pending(pod: Manifest, scheduler: str) -> bool:
    """Whether a pod waits for the scheduler of that name."""
    spec = pod["spec"]
    return (
        not spec.get("nodeName")
        and not spec.get("schedulingGates")
        and spec.get("schedulerName", DEFAULT_NAME) == scheduler
        and not pod["metadata"].get("deletionTimestamp")
        and amounts.is_counted(pod)
    )


def in_order(pods: Iterable[Manifest], scheduler: str) -> list[Manifest]:
    """The pods that wait: the most important first, of these the oldest."""
    return sorted((pod for pod in pods if is_pending(pod, scheduler)), key=_rank)


def is_relevant(before: Manifest | None, after: Manifest | None, scheduler: str) -> bool:
    """Whether a change of a pod is a reason for a pass: it waits now and did not, it asks otherwise, or it made room."""
    if after is not None and is_pending(after, scheduler):
        return before is None or before["spec"] != after["spec"]
    return _takes_room(before) and not _takes_room(after)


def node_facts(node: Manifest) -> tuple[Any, ...]:
    """What placement depends on; a heartbeat changes none of it."""
    return (
        node["metadata"].get("labels"),
        node.get("spec", {}).get("unschedulable", False),
        taints.taints_of(node),
        node.get("status", {}).get("allocatable"),
    )


def _takes_room(pod: Manifest | None) -> bool:
    return pod is not None and bool(pod["spec"].get("nodeName")) and amounts.is_counted(pod)


def _rank(pod: Manifest) -> tuple[int, str, int]:
    metadata = pod["metadata"]
    return -(pod["spec"].get("priority") or 0), metadata["creationTimestamp"], int(metadata["resourceVersion"])
