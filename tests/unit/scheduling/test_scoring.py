"""Which of several nodes a pod goes to."""

from __future__ import annotations

import pytest

from gpushare.sandbox.scheduling import amounts, scoring
from support import rooms
from support import workload_objects as objects

OWNER = objects.workload("ReplicaSet", "web")


def choose(pod, nodes, running=()):
    cluster = rooms.build_rooms(nodes, running)
    return scoring.choose(pod, amounts.requested(pod), list(cluster.values())).name


def preferring(key):
    terms = [{"weight": 1, "preference": {"matchExpressions": [{"key": key, "operator": "Exists"}]}}]
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}}


@pytest.mark.parametrize(
    ("pod", "nodes", "running", "expected"),
    [
        pytest.param(objects.pod(), [objects.node("b"), objects.node("a")], [], "b", id="equals go by name"),
        pytest.param(
            objects.pod(cpu="1"),
            [objects.node("a"), objects.node("b")],
            [objects.pod(node="a", cpu="4")],
            "b",
            id="the emptier one",
        ),
        pytest.param(
            objects.pod(gpu="1"),
            [objects.node("a", gpu="32"), objects.node("b", gpu="8")],
            [objects.pod(node="a", gpu="1")],
            "b",
            id="GPUs do not count, pods do",
        ),
        pytest.param(
            objects.pod(owner=OWNER),
            [objects.node("a"), objects.node("b")],
            [objects.pod(node="a", owner=OWNER), objects.pod(node="b", cpu="6")],
            "b",
            id="away from its siblings",
        ),
        pytest.param(
            objects.pod(spec=preferring("fast"), cpu="1"),
            [objects.node("a"), objects.node("b", labels={"fast": ""})],
            [objects.pod(node="b", cpu="4")],
            "b",
            id="the preferred one",
        ),
        pytest.param(
            objects.pod(),
            [objects.node("a", taints=[{"key": "x", "effect": "PreferNoSchedule"}]), objects.node("b")],
            [objects.pod(node="b", cpu="6")],
            "b",
            id="away from soft taints",
        ),
        pytest.param(
            objects.pod(),
            [objects.node("a"), objects.node("b")],
            [objects.pod(node="a")],
            "b",
            id="pods that ask nothing",
        ),
    ],
)
def test_choose(pod, nodes, running, expected):
    """Pods go where a person would expect them."""
    assert choose(pod, nodes, running) == expected
