"""Jobs: how many pods, and when they are over."""

from __future__ import annotations

import pytest

from gpushare.sandbox.workloads.jobs import deciding, status
from gpushare.sandbox.workloads.jobs.deciding import Outcome, View
from support import workload_objects as objects

NOW = objects.NOW
RUNS, ENDED, FAILED = objects.pod(ready=True), objects.pod(phase="Succeeded"), objects.pod(phase="Failed")


def view(pods=(), *, before=None, now=NOW, pod_spec=None, **spec):
    job = objects.workload("Job", "cleanup", spec={"completions": 1, "parallelism": 1, **spec}, pod_spec=pod_spec)
    job["status"] = before or {}
    return View(job=job, pods=pods, now=now)


def ended_at(phase, time):
    made = objects.pod(phase=phase)
    made["status"]["containerStatuses"] = [{"state": {"terminated": {"finishedAt": time}}}]
    return made


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(view(), 1, id="the first"),
        pytest.param(view([RUNS]), 0, id="one runs"),
        pytest.param(view([FAILED]), 1, id="again after a failure"),
        pytest.param(view([RUNS, ENDED], completions=5, parallelism=2), 1, id="two side by side"),
        pytest.param(view([ENDED, ENDED], completions=3, parallelism=3), 1, id="no more than are missing"),
        pytest.param(view([RUNS, RUNS], parallelism=1, completions=4), -1, id="too many"),
        pytest.param(view([RUNS], completions=None, parallelism=3), 2, id="work queue"),
        pytest.param(view([RUNS, ENDED], completions=None, parallelism=3), 0, id="work queue that is empty"),
        pytest.param(view([RUNS], suspend=True), -1, id="on hold"),
        pytest.param(view(before={"succeeded": 2}, completions=3, parallelism=3), 1, id="pods that are gone count"),
    ],
)
def test_missing_count(found, expected):
    """A Job wants so many pods at a time."""
    assert deciding.missing_count(found) == expected


STARTED = {"startTime": "2026-01-01T00:00:00Z"}
RESTARTED = objects.pod(ready=True)
RESTARTED["status"]["containerStatuses"] = [{"restartCount": 3}]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(view([RUNS]), None, id="goes on"),
        pytest.param(view([ENDED]), Outcome.COMPLETE, id="complete"),
        pytest.param(view([ENDED], completions=2), None, id="half of it"),
        pytest.param(view([ENDED], completions=None), Outcome.COMPLETE, id="work queue is empty"),
        pytest.param(view([ENDED, RUNS], completions=None), None, id="the others may end"),
        pytest.param(view([FAILED], backoffLimit=0), Outcome.TOO_MANY_FAILURES, id="no second try"),
        pytest.param(view([FAILED, FAILED], backoffLimit=2), None, id="another try"),
        pytest.param(
            view([RESTARTED], backoffLimit=2, pod_spec={"restartPolicy": "OnFailure"}),
            Outcome.TOO_MANY_FAILURES,
            id="restarts count where the pod restarts",
        ),
        pytest.param(
            view([RUNS], before=STARTED, activeDeadlineSeconds=30, now=NOW + 30), Outcome.TOO_LATE, id="too late"
        ),
        pytest.param(view([RUNS], before=STARTED, activeDeadlineSeconds=30, now=NOW + 29), None, id="in time"),
    ],
)
def test_outcome(found, expected):
    """When a Job is over, and how."""
    assert deciding.find_outcome(found) is expected


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([], 0, id="nothing failed"),
        pytest.param([ended_at("Failed", objects.TIME)], 10, id="one"),
        pytest.param(
            [ended_at("Failed", "2025-12-31T23:59:50Z"), ended_at("Failed", objects.TIME)], 20, id="two in a row"
        ),
        pytest.param(
            [ended_at("Failed", "2025-12-31T23:59:50Z"), ended_at("Succeeded", objects.TIME)], 0, id="success since"
        ),
        pytest.param([ended_at("Failed", "2025-12-31T23:00:00Z")], 0, id="long ago"),
    ],
)
def test_seconds_held(pods, expected):
    """Failures in a row make the next try wait."""
    assert deciding.seconds_held(view(pods)) == expected


def test_complete():
    """The status of a Job that is complete says so twice, as a real one does."""
    found = status.build_status(view([ENDED], before=STARTED, now=NOW + 60), Outcome.COMPLETE)

    assert found == {
        "startTime": "2026-01-01T00:00:00Z",
        "completionTime": "2026-01-01T00:01:00Z",
        "ready": 0,
        "terminating": 0,
        "uncountedTerminatedPods": {},
        "succeeded": 1,
        "conditions": [
            {
                "type": kind,
                "status": "True",
                "lastProbeTime": "2026-01-01T00:01:00Z",
                "lastTransitionTime": "2026-01-01T00:01:00Z",
                "reason": "CompletionsReached",
                "message": "Reached expected number of succeeded pods",
            }
            for kind in ("SuccessCriteriaMet", "Complete")
        ],
    }


def test_failed():
    """The status of a Job that has failed says why."""
    found = status.build_status(view([FAILED]), Outcome.TOO_MANY_FAILURES)

    assert [condition["type"] for condition in found["conditions"]] == ["FailureTarget", "Failed"]
    assert found["conditions"][1]["message"] == "Job has reached the specified backoff limit"
    assert (found["failed"], "completionTime" in found) == (1, False)


def test_running():
    """The status of a Job that runs."""
    found = status.build_status(view([RUNS]), None)

    assert (found["active"], found["ready"], found["startTime"]) == (1, 1, objects.TIME)
    assert "conditions" not in found


def test_suspended_and_resumed():
    """A Job on hold has not started; when it goes on, that shows."""
    held = status.build_status(view(suspend=True), None)
    resumed = status.build_status(view([RUNS], before=held), None)

    assert "startTime" not in held
    assert [(each["type"], each["status"]) for each in held["conditions"]] == [("Suspended", "True")]
    assert [(each["status"], each["reason"]) for each in resumed["conditions"]] == [("False", "JobResumed")]


@pytest.mark.parametrize(("lasting", "expected"), [(None, None), (0, 0), (60, 50)])
def test_seconds_until_removal(lasting, expected):
    """A Job with a lifetime goes that long after its end."""
    job = view(ttlSecondsAfterFinished=lasting).job
    job["status"] = status.build_status(view([ENDED]), Outcome.COMPLETE)

    assert deciding.finished_at(job) == NOW
    assert deciding.seconds_until_removal(job, NOW + 10) == expected
