"""What the controllers ask about a pod. Pure."""

from __future__ import annotations

from typing import Any

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.objects import times
from gpushare.sandbox.loops import caches
from gpushare.sandbox.scheduling import affinity

_ENDED = ("Succeeded", "Failed")


def phase_of(pod: Manifest) -> str:
    """Pending, Running, Succeeded, Failed or Unknown."""
    return str(pod.get("status", {}).get("phase", "Pending"))


def has_ended(pod: Manifest) -> bool:
    """Whether its containers will not run again."""
    return phase_of(pod) in _ENDED


def is_active(pod: Manifest) -> bool:
    """Whether it counts for a controller that wants so many pods."""
    return not has_ended(pod) and not caches.is_terminating(pod)


def ready_condition(pod: Manifest) -> dict[str, Any]:
    """The Ready condition; empty before the kubelet has written one."""
    for condition in pod.get("status", {}).get("conditions") or []:
        if condition["type"] == "Ready":
            found: dict[str, Any] = condition
            return found
    return {}


def is_ready(pod: Manifest) -> bool:
    """Whether the kubelet calls it ready."""
    return ready_condition(pod).get("status") == "True"


def seconds_until_available(pod: Manifest, min_ready_seconds: int, now: float) -> float | None:
    """0 when it is available at `now` (seconds since 1970), more when it still has to stay ready, None when it is not."""
    condition = ready_condition(pod)
    if condition.get("status") != "True":
        return None
    if not min_ready_seconds:
        return 0.0
    return max(0.0, times.epoch_of(condition["lastTransitionTime"]) + min_ready_seconds - now)


def is_available(pod: Manifest, min_ready_seconds: int, now: float) -> bool:
    """Whether it has been ready for long enough."""
    return seconds_until_available(pod, min_ready_seconds, now) == 0


def node_of(pod: Manifest) -> str:
    """The node that it runs on, or is pinned to while it waits for the scheduler; empty when neither."""
    bound = pod["spec"].get("nodeName")
    if bound:
        return str(bound)
    pinned = affinity.pinned_names(pod["spec"]) or frozenset()
    return next(iter(pinned)) if len(pinned) == 1 else ""
