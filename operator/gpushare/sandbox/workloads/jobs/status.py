"""The status of a Job and its conditions. Pure."""

from __future__ import annotations

from typing import Any

from gpushare.sandbox.apiserver.objects import times
from gpushare.sandbox.loops import caches
from gpushare.sandbox.workloads import pods as pod_facts
from gpushare.sandbox.workloads.jobs import deciding
from gpushare.sandbox.workloads.jobs.deciding import Outcome, View


def build_status(view: View, outcome: Outcome | None) -> dict[str, Any]:
    """All fields as the real controller writes them: some zeroes are left out."""
    before = view.job.get("status", {})
    time = times.seconds_text(view.now)
    status: dict[str, Any] = {
        "ready": sum(map(pod_facts.is_ready, view.active)),
        "terminating": sum(caches.is_terminating(pod) and not pod_facts.has_ended(pod) for pod in view.pods),
        "uncountedTerminatedPods": {},
    }
    if not deciding.is_suspended(view.job):
        status["startTime"] = before.get("startTime", time)
    if before.get("completionTime") or outcome is Outcome.COMPLETE:
        status["completionTime"] = before.get("completionTime", time)
    conditions = _build_conditions(view, outcome, time)
    if conditions:
        status["conditions"] = conditions
    optional = {"active": len(view.active), "succeeded": view.succeeded, "failed": view.failed}
    return status | {name: number for name, number in optional.items() if number}


def _build_conditions(view: View, outcome: Outcome | None, time: str) -> list[dict[str, Any]]:
    conditions: list[dict[str, Any]] = list(view.job.get("status", {}).get("conditions") or [])
    if deciding.is_suspended(view.job):
        conditions = _with(conditions, "Suspended", "True", ("JobSuspended", "Job suspended"), time)
    elif any(condition["type"] == "Suspended" for condition in conditions):
        conditions = _with(conditions, "Suspended", "False", ("JobResumed", "Job resumed"), time)
    if outcome is not None:
        first, last = ("SuccessCriteriaMet", "Complete") if outcome is Outcome.COMPLETE else ("FailureTarget", "Failed")
        for kind in (first, last):
            conditions = _with(conditions, kind, "True", (outcome.value, deciding.MESSAGES[outcome]), time)
    return conditions


def _with(
    conditions: list[dict[str, Any]], kind: str, status: str, why: tuple[str, str], time: str
) -> list[dict[str, Any]]:
    known = next((condition for condition in conditions if condition["type"] == kind), None)
    if known is not None and known["status"] == status:
        return conditions
    added = {"type": kind, "status": status, "lastProbeTime": time, "lastTransitionTime": time}
    added |= {"reason": why[0], "message": why[1]}
    return [*(condition for condition in conditions if condition is not known), added]
