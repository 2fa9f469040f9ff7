"""The status of a Deployment and its conditions: what `kubectl rollout status` waits for. Pure."""

from __future__ import annotations

from typing import Any

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.objects import times
from gpushare.sandbox.workloads.deployments import replica_sets
from gpushare.sandbox.workloads.deployments.replica_sets import View

_AVAILABLE = "Available"
_PROGRESSING = "Progressing"
_DONE = "NewReplicaSetAvailable"
_LATE = "ProgressDeadlineExceeded"
_PAUSED = "DeploymentPaused"
_CREATED = "NewReplicaSetCreated"


def build_status(view: View, now: float, *, created: str = "") -> dict[str, Any]:
    """All fields as the real controller writes them. `created` names a ReplicaSet that was made in this very step."""
    numbers = _numbers(view)
    before = view.deployment.get("status", {})
    conditions = _Conditions(before.get("conditions") or [], now)
    least = view.replicas - view.unavailable
    if numbers["availableReplicas"] >= least:
        conditions.set(_AVAILABLE, "True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        text = "Deployment does not have minimum availability."
        conditions.set(_AVAILABLE, "False", "MinimumReplicasUnavailable", text)
    if created:
        conditions.set(_PROGRESSING, "True", _CREATED, f'Created new replica set "{created}"')
    elif has_deadline(view.deployment):
        _set_progress(view, numbers, conditions)
    if before.get("collisionCount"):
        numbers["collisionCount"] = before["collisionCount"]
    kept = {name: number for name, number in numbers.items() if number or name == "terminatingReplicas"}
    return {**kept, "conditions": conditions.items}


def is_complete(view: View) -> bool:
    """Whether all pods are of the current template, and available."""
    return _is_complete(view, _numbers(view))


def has_deadline(deployment: Manifest) -> bool:
    """Whether somebody wants to know when a rollout takes too long."""
    return int(deployment["spec"].get("progressDeadlineSeconds", 600)) != 2**31 - 1


def seconds_until_late(view: View, now: float) -> float | None:
    """When a rollout that makes no progress will be called late; None when there is none."""
    known = _Conditions(view.deployment.get("status", {}).get("conditions") or [], now).get(_PROGRESSING)
    if not known or known["reason"] in (_DONE, _LATE, _PAUSED) or not has_deadline(view.deployment):
        return None
    return max(0.0, times.epoch_of(known["lastUpdateTime"]) + _deadline(view) - now)


class _Conditions:
    """A list of conditions in the order of their last change, as the real controller keeps it."""

    def __init__(self, items: list[dict[str, Any]], now: float) -> None:
        self.items = [dict(item) for item in items]
        self.now = now

    def get(self, kind: str) -> dict[str, Any]:
        return next((item for item in self.items if item["type"] == kind), {})

    def set(self, kind: str, status: str, reason: str, message: str, *, again: bool = False) -> None:
        """Unless `again`, a condition with the same status and reason stays as it is."""
        known = self.get(kind)
        is_same_status = known.get("status") == status
        if is_same_status and known["reason"] == reason and not again:
            return
        time = times.seconds_text(self.now)
        self.items = [item for item in self.items if item["type"] != kind]
        self.items.append(
            {
                "type": kind,
                "status": status,
                "lastUpdateTime": time,
                "lastTransitionTime": known["lastTransitionTime"] if is_same_status else time,
                "reason": reason,
                "message": message,
            }
        )


def _numbers(view: View) -> dict[str, int]:
    statuses = [found.get("status", {}) for found in view.all]
    available = sum(status.get("availableReplicas", 0) for status in statuses)
    return {
        "observedGeneration": view.deployment["metadata"]["generation"],
        "replicas": sum(status.get("replicas", 0) for status in statuses),
        "updatedReplicas": view.new.get("status", {}).get("replicas", 0) if view.new is not None else 0,
        "readyReplicas": sum(status.get("readyReplicas", 0) for status in statuses),
        "availableReplicas": available,
        "unavailableReplicas": max(0, sum(map(replica_sets.spec_replicas, view.all)) - available),
        "terminatingReplicas": sum(status.get("terminatingReplicas") or 0 for status in statuses),
    }


def _set_progress(view: View, numbers: dict[str, int], conditions: _Conditions) -> None:
    if view.deployment["spec"].get("paused"):
        conditions.set(_PROGRESSING, "Unknown", _PAUSED, "Deployment is paused")
        return
    known = conditions.get(_PROGRESSING)
    name = f'"{_name_of(view)}"'
    what = f"ReplicaSet {name}"
    if known.get("reason") == _PAUSED:
        conditions.set(_PROGRESSING, "Unknown", "DeploymentResumed", "Deployment is resumed")
    elif not known:
        conditions.set(_PROGRESSING, "True", "FoundNewReplicaSet", f"Found new replica set {name}")
    elif known["reason"] == _DONE and numbers["replicas"] == numbers["updatedReplicas"]:
        return
    if _is_complete(view, numbers):
        conditions.set(_PROGRESSING, "True", _DONE, f"{what} has successfully progressed.")
    elif _has_moved(view.deployment.get("status", {}), numbers):
        conditions.set(_PROGRESSING, "True", "ReplicaSetUpdated", f"{what} is progressing.", again=True)
    elif _is_late(view, known, conditions.now):
        conditions.set(_PROGRESSING, "False", _LATE, f"{what} has timed out progressing.")


def _name_of(view: View) -> str:
    return str((view.new or view.deployment)["metadata"]["name"])


def _is_complete(view: View, numbers: dict[str, int]) -> bool:
    counts = (numbers["updatedReplicas"], numbers["replicas"], numbers["availableReplicas"])
    return all(count == view.replicas for count in counts)


def _has_moved(before: dict[str, Any], now: dict[str, int]) -> bool:
    old_before = before.get("replicas", 0) - before.get("updatedReplicas", 0)
    grown = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return now["replicas"] - now["updatedReplicas"] < old_before or any(
        now[name] > before.get(name, 0) for name in grown
    )


def _is_late(view: View, known: dict[str, Any], now: float) -> bool:
    if not known or known["reason"] in (_DONE, _PAUSED):
        return False
    return times.epoch_of(known["lastUpdateTime"]) + _deadline(view) <= now


def _deadline(view: View) -> int:
    return int(view.deployment["spec"].get("progressDeadlineSeconds", 600))
