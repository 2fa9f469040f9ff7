"""Whether a Job is over, and how many pods it should have now. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.objects import times
from gpushare.sandbox.workloads import pods as pod_facts

_FIRST_PAUSE_SECONDS = 10.0
_LAST_PAUSE_SECONDS = 600.0
_FOREVER = 10**9


class Outcome(StrEnum):
    """How a Job has ended; the text is the reason of its condition."""

    COMPLETE = "CompletionsReached"
    TOO_MANY_FAILURES = "BackoffLimitExceeded"
    TOO_LATE = "DeadlineExceeded"


MESSAGES = {
    Outcome.COMPLETE: "Reached expected number of succeeded pods",
    Outcome.TOO_MANY_FAILURES: "Job has reached the specified backoff limit",
    Outcome.TOO_LATE: "Job was active longer than specified deadline",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A Job and its pods."""

    job: Manifest
    pods: Sequence[Manifest]
    now: float
    """Seconds since 1970."""

    @property
    def active(self) -> list[Manifest]:
        """The pods that still run or will."""
        return [pod for pod in self.pods if pod_facts.is_active(pod)]

    @property
    def succeeded(self) -> int:
        """Pods that have ended well, also those that are gone."""
        return self._counted("Succeeded", "succeeded")

    @property
    def failed(self) -> int:
        """Pods that have failed, also those that are gone."""
        return self._counted("Failed", "failed")

    def number(self, name: str, default: int) -> int:
        """A number of the specification."""
        value = self.job["spec"].get(name)
        return default if value is None else int(value)

    def _counted(self, phase: str, field: str) -> int:
        present = sum(pod_facts.phase_of(pod) == phase for pod in self.pods)
        return max(present, int(self.job.get("status", {}).get(field, 0)))


def finished_at(job: Manifest) -> float | None:
    """When the Job ended, in seconds since 1970; None while it has not."""
    for condition in job.get("status", {}).get("conditions") or []:
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            return times.epoch_of(condition["lastTransitionTime"])
    return None


def find_outcome(view: View) -> Outcome | None:
    """How the Job ends now; None when it goes on."""
    restarts = sum(map(_restarts, view.active)) if _is_restarting(view.job) else 0
    if view.failed > view.number("backoffLimit", 6) or restarts > view.number("backoffLimit", 6):
        return Outcome.TOO_MANY_FAILURES
    if seconds_until_deadline(view) == 0:
        return Outcome.TOO_LATE
    if view.job["spec"].get("completions") is None:
        is_complete = view.succeeded > 0 and not view.active
    else:
        is_complete = view.succeeded >= view.number("completions", 1)
    return Outcome.COMPLETE if is_complete else None


def missing_count(view: View) -> int:
    """How many pods to create; negative when there are too many."""
    active = len(view.active)
    if is_suspended(view.job):
        return -active
    if view.job["spec"].get("completions") is None and view.succeeded:
        return 0  # one success of a work queue means that it is empty: the others may end, none comes
    left = view.number("completions", _FOREVER) - view.succeeded
    return min(left, view.number("parallelism", 1)) - active


def is_suspended(job: Manifest) -> bool:
    """Whether somebody has put the Job on hold."""
    return bool(job["spec"].get("suspend"))


def seconds_held(view: View) -> float:
    """How long no new pod may come after failures in a row: 10 s, doubled with each, at most 10 minutes."""
    ended = sorted((_ended_at(pod), pod_facts.phase_of(pod)) for pod in view.pods if pod_facts.has_ended(pod))
    row = 0
    for _, phase in reversed(ended):
        if phase != "Failed":
            break
        row += 1
    if not row:
        return 0.0
    pause = min(_FIRST_PAUSE_SECONDS * float(2 ** (row - 1)), _LAST_PAUSE_SECONDS)
    return max(0.0, ended[-1][0] + pause - view.now)


def seconds_until_deadline(view: View) -> float | None:
    """When the Job will have taken too long; None when it may take for ever, or is on hold."""
    limit = view.job["spec"].get("activeDeadlineSeconds")
    start = view.job.get("status", {}).get("startTime")
    if limit is None or start is None or is_suspended(view.job):
        return None
    return max(0.0, times.epoch_of(start) + int(limit) - view.now)


def seconds_until_removal(job: Manifest, now: float) -> float | None:
    """When a Job that has ended is to be deleted; None when it stays."""
    lasting, end = job["spec"].get("ttlSecondsAfterFinished"), finished_at(job)
    return None if lasting is None or end is None else max(0.0, end + int(lasting) - now)


def _is_restarting(job: Manifest) -> bool:
    return bool(job["spec"]["template"]["spec"].get("restartPolicy") == "OnFailure")


def _restarts(pod: Manifest) -> int:
    return sum(status.get("restartCount", 0) for status in pod.get("status", {}).get("containerStatuses") or [])


def _ended_at(pod: Manifest) -> float:
    states = [status.get("state", {}) for status in pod.get("status", {}).get("containerStatuses") or []]
    ends = [state["terminated"]["finishedAt"] for state in states if state.get("terminated", {}).get("finishedAt")]
    return times.epoch_of(max(ends, default=pod["metadata"]["creationTimestamp"]))
