"""When a kubelet counts as silent, and what a Node's status then says. Pure: observed times are passed in."""

from __future__ import annotations

from typing import Any

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.objects import times
from gpushare.sandbox.workloads.nodes import repairing

GRACE_SECONDS = 40.0
_STARTUP_SECONDS = 60.0
_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


def seconds_left(node: Manifest, silent_seconds: float) -> float | None:
    """How long until the node is given up, after so many seconds without a sign of life; None when it is already."""
    ready = repairing.condition_of(node, "Ready")
    if ready.get("status") == "Unknown":
        return None
    return max(0.0, (GRACE_SECONDS if ready else _STARTUP_SECONDS) - silent_seconds)


def build_unknown(node: Manifest, now: float) -> list[dict[str, Any]]:
    """Conditions to merge into the status of a node that is given up at `now`."""
    return [_build_condition(node, kind, times.seconds_text(now)) for kind in _CONDITIONS]


def _build_condition(node: Manifest, kind: str, now: str) -> dict[str, Any]:
    known = repairing.condition_of(node, kind)
    never = not known
    return {
        "type": kind,
        "status": "Unknown",
        "reason": "NodeStatusNeverUpdated" if never else "NodeStatusUnknown",
        "message": "Kubelet never posted node status." if never else "Kubelet stopped posting node status.",
        "lastHeartbeatTime": known.get("lastHeartbeatTime") or node["metadata"]["creationTimestamp"],
        "lastTransitionTime": now,
    }
