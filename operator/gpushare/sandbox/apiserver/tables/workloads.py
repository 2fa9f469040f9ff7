"""Columns of DaemonSets, Deployments, ReplicaSets and Jobs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.objects import times
from gpushare.sandbox.apiserver.tables.columns import (
    AGE,
    NAME,
    Cell,
    Column,
    number,
    selector,
    true_conditions,
    value_at,
    wide,
)

_ENDS: Final = ("Complete", "Failed")


def _of_containers(field: str) -> Cell:
    path = ".spec.template.spec.containers"
    return lambda obj, _: ",".join(each.get(field, "") for each in value_at(obj, path, ()))


def _ready(obj: Manifest, _: datetime) -> str:
    return f"{value_at(obj, '.status.readyReplicas', 0)}/{value_at(obj, '.spec.replicas', 0)}"


def _completions(obj: Manifest, _: datetime) -> str:
    done, parallelism = value_at(obj, ".status.succeeded", 0), value_at(obj, ".spec.parallelism", 1)
    wanted = value_at(obj, ".spec.completions", f"1 of {parallelism}" if parallelism > 1 else 1)
    return f"{done}/{wanted}"


def _job_status(obj: Manifest, _: datetime) -> str:
    true = true_conditions(obj)
    if ended := next((word for word in _ENDS if word in true), ""):
        return ended
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return next((word for word in ("Suspended", "FailureTarget", "SuccessCriteriaMet") if word in true), "Running")


def _duration(obj: Manifest, now: datetime) -> str:
    start, end = value_at(obj, ".status.startTime"), value_at(obj, ".status.completionTime")
    if not start:
        return ""
    return times.duration(times.parse(end) - times.parse(start)) if end else times.age(start, now)


_PODS: Final = (
    wide("Containers", _of_containers("name")), wide("Images", _of_containers("image")),
    wide("Selector", selector(".spec.selector")),
)  # fmt: skip

COLUMNS: Final[Mapping[tuple[str, str], tuple[Column, ...]]] = {
    ("apps", "daemonsets"): (
        NAME, number("Desired", ".status.desiredNumberScheduled"), number("Current", ".status.currentNumberScheduled"),
        number("Ready", ".status.numberReady"), number("Up-to-date", ".status.updatedNumberScheduled"),
        number("Available", ".status.numberAvailable"),
        Column("Node Selector", selector(".spec.template.spec.nodeSelector")), AGE, *_PODS,
    ),
    ("apps", "deployments"): (
        NAME, Column("Ready", _ready), number("Up-to-date", ".status.updatedReplicas"),
        number("Available", ".status.availableReplicas"), AGE, *_PODS,
    ),
    ("apps", "replicasets"): (
        NAME, number("Desired", ".spec.replicas"), number("Current", ".status.replicas"),
        number("Ready", ".status.readyReplicas"), AGE, *_PODS,
    ),
    ("batch", "jobs"): (
        NAME, Column("Status", _job_status), Column("Completions", _completions), Column("Duration", _duration), AGE, *_PODS,
    ),
}  # fmt: skip
