"""The columns of pods, and the one word in which a pod's state is put."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.objects import times
from gpushare.sandbox.apiserver.tables.columns import (
    AGE,
    NAME,
    NONE,
    Column,
    at,
    true_conditions,
    value_at,
    wide,
)

_ENDED: Final = ("Succeeded", "Failed")


def _ready(obj: Manifest, _: datetime) -> str:
    states = value_at(obj, ".status.containerStatuses", ())
    ready = sum(bool(each.get("ready")) and "running" in (each.get("state") or {}) for each in states)
    return f"{ready}/{len(value_at(obj, '.spec.containers', ()))}"


def _status(obj: Manifest, _: datetime) -> str:
    """What `kubectl get pods` shows under STATUS."""
    status, true = obj.get("status") or {}, true_conditions(obj)
    reason = status.get("reason") or status.get("phase", "")
    if value_at(obj, '.status.conditions[?(@.type=="PodScheduled")].reason') == "SchedulingGated":
        reason = "SchedulingGated"
    total = len(value_at(obj, ".spec.initContainers", ()))
    initializing = _initializing(status.get("initContainerStatuses") or (), total)
    if initializing and "Initialized" not in true:
        reason = initializing
    else:
        reason = _container_reason(status, reason, is_ready="Ready" in true)
    if not obj["metadata"].get("deletionTimestamp"):
        return reason
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return reason if status.get("phase") in _ENDED else "Terminating"


def _initializing(statuses: Iterable[Mapping[str, Any]], total: int) -> str:
    for position, container in enumerate(statuses):
        state = container.get("state") or {}
        ended, waiting = state.get("terminated"), (state.get("waiting") or {}).get("reason", "")
        if ended is not None and not ended.get("exitCode"):
            continue
        if ended is not None:
            return f"Init:{_end_of(ended)}"
        return f"Init:{waiting}" if waiting not in ("", "PodInitializing") else f"Init:{position}/{total}"
    return ""


def _container_reason(status: Mapping[str, Any], reason: str, *, is_ready: bool) -> str:
    is_running = False
    for container in reversed(status.get("containerStatuses") or ()):
        state = container.get("state") or {}
        if waiting := (state.get("waiting") or {}).get("reason"):
            reason = waiting
        elif "terminated" in state:
            reason = _end_of(state["terminated"])
        elif container.get("ready") and "running" in state:
            is_running = True
    if reason == "Completed" and is_running:
        return "Running" if is_ready else "NotReady"
    return reason


def _end_of(terminated: Mapping[str, Any]) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    signal = terminated.get("signal")
    return f"Signal:{signal}" if signal else f"ExitCode:{terminated.get('exitCode', 0)}"


def _restarts(obj: Manifest, now: datetime) -> str:
    containers = value_at(obj, ".status.containerStatuses", ())
    number = sum(each.get("restartCount", 0) for each in containers)
    last = max((value_at(each, ".lastState.terminated.finishedAt") for each in containers), default="")
    return f"{number} ({times.age(last, now)} ago)" if number and last else str(number)


def _gates(obj: Manifest, _: datetime) -> str:
    gates = [each["conditionType"] for each in value_at(obj, ".spec.readinessGates", ())]
    true = true_conditions(obj)
    return f"{sum(gate in true for gate in gates)}/{len(gates)}" if gates else NONE


COLUMNS: Final = (
    NAME, Column("Ready", _ready), Column("Status", _status), Column("Restarts", _restarts), AGE,
    wide("IP", at(".status.podIP", NONE)), wide("Node", at(".spec.nodeName", NONE)),
    wide("Nominated Node", at(".status.nominatedNodeName", NONE)), wide("Readiness Gates", _gates),
)  # fmt: skip
