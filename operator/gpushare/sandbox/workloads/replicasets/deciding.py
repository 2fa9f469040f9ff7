"""How many pods a ReplicaSet is short of, and which of too many go first; and its status. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.objects import selectors, times
from gpushare.sandbox.loops import caches
from gpushare.sandbox.workloads import pods as pod_facts

_ANNOTATION_COST = "controller.kubernetes.io/pod-deletion-cost"
_REPLACE_SECONDS = 2.0
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def missing_count(replica_set: Manifest, pods: Sequence[Manifest]) -> int:
    """How many pods to create; negative when there are too many."""
    return int(replica_set["spec"].get("replicas", 1)) - sum(map(pod_facts.is_active, pods))


def seconds_held(pods: Sequence[Manifest], now: float) -> float:
    """How long no replacement may come after a pod has failed.

    A real controller replaces such pods at once, and again, as fast as its cluster lets them fail: every few seconds.
    Here all is faster, and a Deployment whose pods no node admits would fill the cluster with thousands of failed ones.
    """
    failed = [pod["metadata"]["creationTimestamp"] for pod in pods if pod_facts.phase_of(pod) == "Failed"]
    return max(0.0, times.epoch_of(max(failed)) + _REPLACE_SECONDS - now) if failed else 0.0


def build_excess(pods: Sequence[Manifest], count: int) -> list[Manifest]:
    """The `count` active pods that are worth least: not placed, not running, not ready, crowded, young."""
    active = [pod for pod in pods if pod_facts.is_active(pod)]
    crowd = Counter(pod_facts.node_of(pod) for pod in active)
    # Two stable sorts: what is youngest first, then by worth. Times cannot be negated.
    active.sort(key=_youth, reverse=True)
    active.sort(key=lambda pod: _worth(pod, crowd[pod_facts.node_of(pod)]))
    return active[:count]


def build_status(replica_set: Manifest, pods: Sequence[Manifest], now: float) -> dict[str, Any]:
    """All fields as the real controller writes them: zeroes are left out, but for the first and the last."""
    active = [pod for pod in pods if pod_facts.is_active(pod)]
    template = (replica_set["spec"]["template"].get("metadata") or {}).get("labels") or {}
    min_ready = min_ready_seconds(replica_set)
    optional = {
        "fullyLabeledReplicas": sum(selectors.labels_of(pod).items() >= template.items() for pod in active),
        "readyReplicas": sum(map(pod_facts.is_ready, active)),
        "availableReplicas": sum(pod_facts.is_available(pod, min_ready, now) for pod in active),
    }
    going = sum(caches.is_terminating(pod) and not pod_facts.has_ended(pod) for pod in pods)
    return {
        "replicas": len(active),
        "observedGeneration": replica_set["metadata"]["generation"],
        "terminatingReplicas": going,
    } | {name: number for name, number in optional.items() if number}


def seconds_until_change(replica_set: Manifest, pods: Sequence[Manifest], now: float) -> float | None:
    """When a pod that is ready will have been so for long enough; None when only an event can change anything."""
    min_ready = min_ready_seconds(replica_set)
    if not min_ready:
        return None
    waits = [pod_facts.seconds_until_available(pod, min_ready, now) for pod in pods if pod_facts.is_active(pod)]
    return min((wait for wait in waits if wait), default=None)


def min_ready_seconds(replica_set: Manifest) -> int:
    """How long a pod must be ready to count as available."""
    return int(replica_set["spec"].get("minReadySeconds") or 0)


def _worth(pod: Manifest, crowd: int) -> tuple[bool, int, bool, int, int, int]:
    restarts = [status.get("restartCount", 0) for status in pod.get("status", {}).get("containerStatuses") or []]
    return (
        bool(pod["spec"].get("nodeName")),
        _PHASES.get(pod_facts.phase_of(pod), 0),
        pod_facts.is_ready(pod),
        int((pod["metadata"].get("annotations") or {}).get(_ANNOTATION_COST, 0)),
        -crowd,
        -max(restarts, default=0),
    )


def _youth(pod: Manifest) -> tuple[str, str, int]:
    metadata = pod["metadata"]
    ready_since = pod_facts.ready_condition(pod).get("lastTransitionTime", "")
    return ready_since, metadata["creationTimestamp"], int(metadata["resourceVersion"])
