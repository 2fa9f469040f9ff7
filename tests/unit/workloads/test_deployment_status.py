"""The status of a Deployment, step by step through a rollout."""

from __future__ import annotations

import pytest

from gpushare.sandbox.workloads.deployments import replica_sets, status
from support import workload_objects as objects

NOW = objects.NOW
LATER = "2026-01-01T00:01:00Z"


def view(new=None, old=None, *, before=None, **spec):
    """A Deployment of 2; `new` and `old` are spec replicas, pods, ready ones of its ReplicaSets."""
    of = objects.workload("Deployment", "web", spec={"replicas": 2, **spec})
    of["status"] = before or {}
    return replica_sets.View(
        deployment=of,
        new=_set("new", *new) if new else None,
        old=[_set("old", *old)] if old else [],
    )


def _set(name, replicas, pods, ready):
    made = objects.workload("ReplicaSet", name, spec={"replicas": replicas})
    made["status"] = {"replicas": pods, "readyReplicas": ready, "availableReplicas": ready}
    return made


def said(found):
    """Type, status, reason and message of each condition, in order."""
    return [tuple(each[key] for key in ("type", "status", "reason", "message")) for each in found["conditions"]]


AVAILABLE = ("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
NOT_AVAILABLE = (
    "Available",
    "False",
    "MinimumReplicasUnavailable",
    "Deployment does not have minimum availability.",
)


def test_from_start_to_end():
    """Conditions come and change as on a real cluster, the last changed one last."""
    first = status.build_status(view(new=(2, 0, 0)), NOW, created="new")
    assert said(first) == [
        NOT_AVAILABLE,
        ("Progressing", "True", "NewReplicaSetCreated", 'Created new replica set "new"'),
    ]

    second = status.build_status(view(new=(2, 2, 1), before=first), NOW + 1)
    assert said(second) == [
        NOT_AVAILABLE,
        ("Progressing", "True", "ReplicaSetUpdated", 'ReplicaSet "new" is progressing.'),
    ]

    third = status.build_status(view(new=(2, 2, 2), before=second), NOW + 60)
    assert said(third) == [
        AVAILABLE,
        ("Progressing", "True", "NewReplicaSetAvailable", 'ReplicaSet "new" has successfully progressed.'),
    ]
    progressing = third["conditions"][1]
    assert (progressing["lastTransitionTime"], progressing["lastUpdateTime"]) == (objects.TIME, LATER)
    assert {key: value for key, value in third.items() if key != "conditions"} == {
        "observedGeneration": 1,
        "replicas": 2,
        "updatedReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "terminatingReplicas": 0,
    }
    assert status.build_status(view(new=(2, 2, 2), before=third), NOW + 99) == third


def test_scaled_up():
    """Growing is no rollout: Progressing stays as it was."""
    done = status.build_status(view(new=(2, 2, 2)), NOW)
    grown = status.build_status(view(new=(4, 2, 2), replicas=4, before=done), NOW + 1)

    assert said(grown)[0][:3] == ("Progressing", "True", "NewReplicaSetAvailable")
    assert grown["unavailableReplicas"] == 2


def test_numbers_of_a_rollout():
    """All ReplicaSets count; what is updated is the new one's."""
    found = status.build_status(view(new=(1, 1, 0), old=(2, 2, 2)), NOW)

    assert (found["replicas"], found["updatedReplicas"], found["availableReplicas"]) == (3, 1, 2)
    assert found["unavailableReplicas"] == 1


def test_late():
    """A rollout that does not move for too long is called so, once."""
    started = status.build_status(view(new=(2, 2, 0)), NOW)
    stuck = view(new=(2, 2, 0), before=started, progressDeadlineSeconds=60)

    assert status.seconds_until_late(stuck, NOW + 20) == 40
    late = status.build_status(stuck, NOW + 60)
    assert said(late)[-1] == (
        "Progressing",
        "False",
        "ProgressDeadlineExceeded",
        'ReplicaSet "new" has timed out progressing.',
    )
    again = view(new=(2, 2, 0), before=late, progressDeadlineSeconds=60)
    assert status.build_status(again, NOW + 99) == late
    assert status.seconds_until_late(again, NOW + 99) is None


def test_no_deadline():
    """Who sets the deadline to the largest number wants no Progressing condition."""
    found = status.build_status(view(new=(2, 2, 2), progressDeadlineSeconds=2**31 - 1), NOW)

    assert [condition["type"] for condition in found["conditions"]] == ["Available"]


def test_paused_and_resumed():
    """A pause shows, and its end."""
    done = status.build_status(view(new=(2, 2, 2)), NOW)
    paused = status.build_status(view(new=(2, 2, 2), before=done, paused=True), NOW)
    resumed = status.build_status(view(new=(2, 1, 1), before=paused), NOW)

    assert said(paused)[-1] == ("Progressing", "Unknown", "DeploymentPaused", "Deployment is paused")
    assert said(resumed)[-1][:3] == ("Progressing", "Unknown", "DeploymentResumed")


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        pytest.param((2, 2, 2), None, True, id="done"),
        pytest.param((2, 2, 1), None, False, id="one not available"),
        pytest.param((2, 2, 2), (0, 1, 0), False, id="an old pod is still there"),
        pytest.param(None, (2, 2, 2), False, id="not begun"),
    ],
)
def test_is_complete(new, old, expected):
    """A rollout is over when every pod is new and works."""
    assert status.is_complete(view(new=new, old=old)) is expected
