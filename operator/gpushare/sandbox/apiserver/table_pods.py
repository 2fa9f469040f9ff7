"""The columns of pods, and the one word in which a pod's state is put. Called by `table_kinds`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import times
from gpushare.sandbox.apiserver.table_cells import (
    AGE,
    NAME,
    NONE,
    Column,
    Columns,
    age_of,
    name_of,
    spec_of,
    status_of,
    wide,
)

_ENDED: Final = ("Succeeded", "Failed")


def _pod(obj: Manifest, now: datetime) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    containers = status.get("containerStatuses") or ()
    ready = sum(bool(each.get("ready")) and "running" in (each.get("state") or {}) for each in containers)
    addresses = status.get("podIPs") or [{"ip": status.get("podIP") or NONE}]
    return [
        name_of(obj), f"{ready}/{len(spec.get('containers') or ())}", _reason(obj), _restarts(status, now),
        age_of(obj, now), addresses[0]["ip"], spec.get("nodeName") or NONE, status.get("nominatedNodeName") or NONE,
        _gates(spec, status),
    ]  # fmt: skip


def _reason(obj: Manifest) -> str:
    """What `kubectl get pods` shows under STATUS."""
    spec, status = spec_of(obj), status_of(obj)
    reason = status.get("reason") or status.get("phase", "")
    conditions = {each["type"]: each for each in status.get("conditions") or ()}
    if conditions.get("PodScheduled", {}).get("reason") == "SchedulingGated":
        reason = "SchedulingGated"
    initializing = _initializing(status.get("initContainerStatuses") or (), len(spec.get("initContainers") or ()))
    if initializing and conditions.get("Initialized", {}).get("status") != "True":
        reason = initializing
    else:
        reason = _container_reason(status, reason, is_ready=conditions.get("Ready", {}).get("status") == "True")
    if not obj["metadata"].get("deletionTimestamp"):
        return reason
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return reason if status.get("phase") in _ENDED else "Terminating"


def _initializing(statuses: Iterable[Mapping[str, Any]], total: int) -> str:
    for at, container in enumerate(statuses):
        state = container.get("state") or {}
        ended, waiting = state.get("terminated"), (state.get("waiting") or {}).get("reason", "")
        if ended is not None and not ended.get("exitCode"):
            continue
        if ended is not None:
            return f"Init:{_end_of(ended)}"
        return f"Init:{waiting}" if waiting not in ("", "PodInitializing") else f"Init:{at}/{total}"
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


def _restarts(status: Mapping[str, Any], now: datetime) -> str:
    containers = status.get("containerStatuses") or ()
    count = sum(each.get("restartCount", 0) for each in containers)
    ends = [((each.get("lastState") or {}).get("terminated") or {}).get("finishedAt") for each in containers]
    last = max((end for end in ends if end), default="")
    return f"{count} ({times.age(last, now)} ago)" if count and last else str(count)


def _gates(spec: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    gates = [each["conditionType"] for each in spec.get("readinessGates") or ()]
    true = {each["type"] for each in status.get("conditions") or () if each["status"] == "True"}
    return f"{sum(gate in true for gate in gates)}/{len(gates)}" if gates else NONE


PODS: Final = Columns(
    (
        NAME, Column("Ready"), Column("Status"), Column("Restarts"), AGE, wide("IP"), wide("Node"), wide("Nominated Node"),
        wide("Readiness Gates"),
    ),
    _pod,
)  # fmt: skip
