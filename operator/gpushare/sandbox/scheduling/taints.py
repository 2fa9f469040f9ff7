"""Taints of nodes and the tolerations of pods. Pure. Used by the scheduler, DaemonSets and the eviction of pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from gpushare.domain.manifests import Manifest

Taint = Mapping[str, Any]
Toleration = Mapping[str, Any]

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
MEMORY_PRESSURE: Final = "node.kubernetes.io/memory-pressure"
DISK_PRESSURE: Final = "node.kubernetes.io/disk-pressure"
PID_PRESSURE: Final = "node.kubernetes.io/pid-pressure"
NETWORK_UNAVAILABLE: Final = "node.kubernetes.io/network-unavailable"

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"


def taints_of(node: Manifest) -> list[dict[str, Any]]:
    """The taints of a node."""
    return list(node.get("spec", {}).get("taints") or [])


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Whether one of the tolerations bears the taint."""
    return any(_bears(toleration, taint) for toleration in tolerations)


def untolerated(node: Manifest, tolerations: Iterable[Toleration], effects: Iterable[str]) -> list[dict[str, Any]]:
    """The node's taints of these effects that no toleration bears."""
    known, wanted = list(tolerations), set(effects)
    return [taint for taint in taints_of(node) if taint["effect"] in wanted and not is_tolerated(taint, known)]


def seconds_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> float | None:
    """How long a pod stays on a node with this NoExecute taint: 0 without a toleration, None for ever."""
    bearing = [toleration for toleration in tolerations if _bears(toleration, taint)]
    if not bearing:
        return 0.0
    limits = [
        toleration["tolerationSeconds"] for toleration in bearing if toleration.get("tolerationSeconds") is not None
    ]
    return float(max(0, min(limits))) if limits else None


def _bears(toleration: Toleration, taint: Taint) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")
