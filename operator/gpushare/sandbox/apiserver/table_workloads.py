"""Columns and cells of DaemonSets, Deployments, ReplicaSets, StatefulSets and Jobs. Called by `table_kinds`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import times
from gpushare.sandbox.apiserver.table_cells import (
    AGE,
    NAME,
    Column,
    Columns,
    age_of,
    containers_text,
    integer,
    labels_text,
    name_of,
    selector_text,
    spec_of,
    status_of,
    wide,
)

_PODS: Final = (wide("Containers"), wide("Images"), wide("Selector"))


def _pods(obj: Manifest) -> list[Any]:
    return [*containers_text(spec_of(obj).get("template") or {}), selector_text(spec_of(obj).get("selector"))]


def _counts(obj: Manifest, *names: str) -> list[int]:
    return [status_of(obj).get(name, 0) for name in names]


def _daemon_set(obj: Manifest, now: datetime) -> list[Any]:
    template = (spec_of(obj).get("template") or {}).get("spec") or {}
    counts = _counts(
        obj,
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    return [name_of(obj), *counts, labels_text(template.get("nodeSelector")), age_of(obj, now), *_pods(obj)]


def _deployment(obj: Manifest, now: datetime) -> list[Any]:
    ready = f"{status_of(obj).get('readyReplicas', 0)}/{spec_of(obj).get('replicas', 0)}"
    return [name_of(obj), ready, *_counts(obj, "updatedReplicas", "availableReplicas"), age_of(obj, now), *_pods(obj)]


def _replica_set(obj: Manifest, now: datetime) -> list[Any]:
    wanted = spec_of(obj).get("replicas", 0)
    return [name_of(obj), wanted, *_counts(obj, "replicas", "readyReplicas"), age_of(obj, now), *_pods(obj)]


def _stateful_set(obj: Manifest, now: datetime) -> list[Any]:
    ready = f"{status_of(obj).get('readyReplicas', 0)}/{spec_of(obj).get('replicas', 0)}"
    return [name_of(obj), ready, age_of(obj, now), *_pods(obj)[:2]]


def _job(obj: Manifest, now: datetime) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    wanted = spec.get("completions")
    done = status.get("succeeded", 0)
    completions = f"{done}/{wanted}" if wanted is not None else _any_of(done, spec.get("parallelism", 1))
    return [name_of(obj), _job_status(obj), completions, _job_duration(status, now), age_of(obj, now), *_pods(obj)]


def _any_of(done: int, parallelism: int) -> str:
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def _job_status(obj: Manifest) -> str:
    true = {each["type"] for each in status_of(obj).get("conditions") or () if each["status"] == "True"}
    if "Complete" in true:
        return "Complete"
    if "Failed" in true:
        return "Failed"
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    if "Suspended" in true:
        return "Suspended"
    return next((word for word in ("FailureTarget", "SuccessCriteriaMet") if word in true), "Running")


def _job_duration(status: Mapping[str, Any], now: datetime) -> str:
    start, end = status.get("startTime"), status.get("completionTime")
    if not start:
        return ""
    return times.duration(times.parse(end) - times.parse(start)) if end else times.age(start, now)


COLUMNS: Final[Mapping[tuple[str, str], Columns]] = {
    ("apps", "daemonsets"): Columns(
        (
            NAME, integer("Desired"), integer("Current"), integer("Ready"), integer("Up-to-date"), integer("Available"),
            Column("Node Selector"), AGE, *_PODS,
        ),
        _daemon_set,
    ),
    ("apps", "deployments"): Columns(
        (NAME, Column("Ready"), integer("Up-to-date"), integer("Available"), AGE, *_PODS), _deployment
    ),
    ("apps", "replicasets"): Columns(
        (NAME, integer("Desired"), integer("Current"), integer("Ready"), AGE, *_PODS), _replica_set
    ),
    ("apps", "statefulsets"): Columns((NAME, Column("Ready"), AGE, *_PODS[:2]), _stateful_set),
    ("batch", "jobs"): Columns(
        (NAME, Column("Status"), Column("Completions"), Column("Duration"), AGE, *_PODS), _job
    ),
}  # fmt: skip
