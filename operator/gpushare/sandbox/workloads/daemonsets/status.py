"""The status of a DaemonSet: the numbers that `kubectl get ds` and `kubectl rollout status` go by. Pure."""

from __future__ import annotations

from typing import Any

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.workloads import pods as pod_facts
from gpushare.sandbox.workloads.daemonsets import placing
from gpushare.sandbox.workloads.daemonsets.deciding import View


def build_status(view: View) -> dict[str, Any]:
    """All fields as the real controller writes them: some zeroes are left out."""
    by_node = view.pods_by_node()
    first: list[Manifest] = []
    desired = misscheduled = 0
    for node in view.nodes:
        present = by_node.get(node["metadata"]["name"], [])
        if placing.build_placement(view.daemon_set, node).should_run:
            desired += 1
            first += present[:1]
        else:
            misscheduled += bool(present)
    available = sum(map(view.is_available, first))
    status: dict[str, Any] = {
        "currentNumberScheduled": len(first),
        "desiredNumberScheduled": desired,
        "numberMisscheduled": misscheduled,
        "numberReady": sum(map(pod_facts.is_ready, first)),
        "observedGeneration": view.daemon_set["metadata"]["generation"],
    }
    optional = {
        "numberAvailable": available,
        "numberUnavailable": desired - available,
        "updatedNumberScheduled": sum(map(view.is_new, first)),
        "collisionCount": view.daemon_set.get("status", {}).get("collisionCount", 0),
    }
    return status | {name: number for name, number in optional.items() if number}


def seconds_until_change(view: View) -> float | None:
    """When a pod that is ready will have been so for long enough; None when only an event can change anything."""
    waits = [pod_facts.seconds_until_available(pod, view.min_ready_seconds, view.now) for pod in view.pods]
    return min((wait for wait in waits if wait), default=None)
