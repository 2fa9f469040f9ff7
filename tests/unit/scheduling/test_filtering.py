"""Which nodes a pod fits on, and what is said when it fits on none."""

from __future__ import annotations

import pytest

from gpushare.sandbox.scheduling import amounts, diagnosis, filtering
from support import rooms
from support import workload_objects as objects

NO_GPUS = "no new claims to deallocate, preemption: 0/3 nodes are available:"
NEVER = {"preemptionPolicy": "Never"}


def pinned(name):
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    }


def explain(pod, nodes, running=()):
    """The message about a pod that must fit nowhere."""
    cluster = rooms.build_rooms(nodes, running)
    filtered = filtering.build_filtered(pod, amounts.requested(pod), cluster)
    assert not filtered.fitting
    return diagnosis.build_message(pod, filtered.refused)


def t4(name, **more):
    return objects.node(name, labels={"product": "T4"}, gpu="4", **more)


@pytest.mark.parametrize(
    ("pod", "nodes", "running", "expected"),
    [
        pytest.param(objects.pod(), [], [], "no nodes available to schedule pods", id="no nodes"),
        pytest.param(
            objects.pod(gpu="99"),
            [t4("a"), t4("b"), t4("c")],
            [],
            f"0/3 nodes are available: 3 Insufficient nvidia.com/gpu. {NO_GPUS} 3 Preemption is not helpful for scheduling.",
            id="too big for any node",
        ),
        pytest.param(
            objects.pod(spec={"nodeSelector": {"product": "T4"}}, gpu="1"),
            [t4("a"), objects.node("b"), objects.node("c")],
            [objects.pod(node="a", gpu="4")],
            "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) didn't match Pod's node affinity/selector. "
            f"{NO_GPUS} 1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling.",
            id="full, and of the wrong kind",
        ),
        pytest.param(
            objects.pod(gpu="1"),
            [t4("a", taints=[{"key": "x", "effect": "NoSchedule"}]), t4("b", unschedulable=True), objects.node("c")],
            [],
            "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint(s), "
            f"1 node(s) were unschedulable. {NO_GPUS} 3 Preemption is not helpful for scheduling.",
            id="tainted, cordoned, without GPUs",
        ),
        pytest.param(
            objects.pod(spec=pinned("a"), gpu="1"),
            [t4("a"), t4("b"), t4("c")],
            [objects.pod(node="a", gpu="4")],
            "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]. "
            f"{NO_GPUS} 1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling.",
            id="pinned to a full node",
        ),
        pytest.param(
            objects.pod(cpu="1", memory="1Gi"),
            [objects.node("a", cpu="500m", memory="1Mi", pods="0")],
            [],
            "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory, 1 Too many pods. "
            "no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
            id="several at once",
        ),
        pytest.param(
            objects.pod(spec=NEVER, gpu="1"),
            [objects.node("a")],
            [],
            "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. "
            "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never.",
            id="a pod that pushes nobody away",
        ),
    ],
)
def test_message(pod, nodes, running, expected):
    """A pod that fits nowhere is told so in the words of a real scheduler."""
    assert explain(pod, nodes, running) == expected


@pytest.mark.parametrize(
    ("pod", "node"),
    [
        pytest.param(objects.pod(), objects.node("a"), id="nothing asked"),
        pytest.param(objects.pod(gpu="4"), objects.node("a", gpu="4"), id="all of it"),
        pytest.param(objects.pod(gpu="0"), objects.node("a"), id="none of what is not there"),
        pytest.param(
            objects.pod(spec={"tolerations": [{"operator": "Exists"}]}),
            objects.node("a", unschedulable=True, taints=[{"key": "x", "effect": "NoSchedule"}]),
            id="tolerates a cordoned node",
        ),
        pytest.param(
            objects.pod(),
            objects.node("a", taints=[{"key": "x", "effect": "PreferNoSchedule"}]),
            id="only a soft taint",
        ),
    ],
)
def test_fits(pod, node):
    """A pod fits where nothing speaks against it."""
    filtered = filtering.build_filtered(pod, amounts.requested(pod), rooms.build_rooms([node]))

    assert [room.name for room in filtered.fitting] == ["a"]
    assert not filtered.refused
