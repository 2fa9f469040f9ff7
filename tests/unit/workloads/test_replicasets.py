"""ReplicaSets: how many pods, and which go first."""

from __future__ import annotations

import pytest

from gpushare.sandbox.workloads.replicasets import deciding
from support import workload_objects as objects


def replica_set(replicas=3, **spec):
    return objects.workload("ReplicaSet", "web", spec={"replicas": replicas, **spec})


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([], 3, id="none"),
        pytest.param([objects.pod(), objects.pod(ready=True)], 1, id="one short"),
        pytest.param(
            [objects.pod(phase="Failed"), objects.pod(terminating=True)], 3, id="ended and going do not count"
        ),
        pytest.param([objects.pod() for _ in range(5)], -2, id="too many"),
    ],
)
def test_missing_count(pods, expected):
    """A ReplicaSet wants so many active pods."""
    assert deciding.missing_count(replica_set(), pods) == expected


def costly(name, cost):
    made = objects.pod(name, node="a", ready=True)
    made["metadata"]["annotations"] = {"controller.kubernetes.io/pod-deletion-cost": cost}
    return made


def restarted(name, count):
    made = objects.pod(name, node="a", ready=True)
    made["status"]["containerStatuses"] = [{"restartCount": count}]
    return made


def ready_since(name, time):
    made = objects.pod(name, node="a", ready=True)
    made["status"]["conditions"][0]["lastTransitionTime"] = time
    return made


@pytest.mark.parametrize(
    "pods",
    [
        pytest.param([objects.pod("goes"), objects.pod("stays", node="a")], id="without a node"),
        pytest.param(
            [objects.pod("stays", node="a", phase="Running"), objects.pod("goes", node="a")], id="not running"
        ),
        pytest.param(
            [objects.pod("stays", node="a", ready=True), objects.pod("goes", node="a", phase="Running")], id="not ready"
        ),
        pytest.param([costly("stays", "5"), costly("goes", "-5")], id="cheap"),
        pytest.param(
            [
                objects.pod("stays", node="a", ready=True),
                objects.pod("goes", node="b", ready=True, age=1),
                objects.pod("stays", node="b", ready=True, age=9),
            ],
            id="crowded",
        ),
        pytest.param(
            [ready_since("stays", "2026-01-01T00:00:00Z"), ready_since("goes", "2026-01-01T00:01:00Z")], id="ready last"
        ),
        pytest.param([restarted("stays", 0), restarted("goes", 3)], id="restarting"),
        pytest.param(
            [objects.pod("stays", node="a", ready=True, age=9), objects.pod("goes", node="a", ready=True, age=1)],
            id="young",
        ),
    ],
)
def test_excess(pods):
    """Of too many pods, those that are worth least go first."""
    assert [pod["metadata"]["name"] for pod in deciding.build_excess(pods, 1)] == ["goes"]


def test_status():
    """Every field of the real status; most zeroes are left out."""
    labels = {"app": "web"}
    pods = [objects.pod(ready=True, labels=labels), objects.pod(labels={"app": "x"}), objects.pod(terminating=True)]

    assert deciding.build_status(replica_set(), pods, objects.NOW) == {
        "replicas": 2,
        "fullyLabeledReplicas": 1,
        "readyReplicas": 1,
        "availableReplicas": 1,
        "observedGeneration": 1,
        "terminatingReplicas": 1,
    }
    assert deciding.build_status(replica_set(0), [], objects.NOW) == {
        "replicas": 0,
        "observedGeneration": 1,
        "terminatingReplicas": 0,
    }


def test_seconds_until_change():
    """With minReadySeconds, time alone makes a pod available."""
    pods = [objects.pod(ready=True)]

    assert deciding.seconds_until_change(replica_set(minReadySeconds=30), pods, objects.NOW + 10) == 20
    assert deciding.seconds_until_change(replica_set(), pods, objects.NOW) is None


def test_seconds_held():
    """A pod that has just failed is not replaced at once, or a cluster that admits none would fill up with them."""
    failed, older = objects.pod(phase="Failed", age=1), objects.pod(phase="Failed", age=9)

    assert deciding.seconds_held([older, failed, objects.pod()], objects.NOW - 1) == 1
    assert deciding.seconds_held([older, failed], objects.NOW + 5) == 0
    assert deciding.seconds_held([objects.pod()], objects.NOW) == 0
