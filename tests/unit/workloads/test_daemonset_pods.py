"""Which pods a DaemonSet gets and loses."""

from __future__ import annotations

import pytest

from gpushare.sandbox.scheduling import taints
from gpushare.sandbox.workloads.daemonsets import deciding, placing, status
from gpushare.sandbox.workloads.daemonsets.deciding import View
from gpushare.sandbox.workloads.daemonsets.held import HeldNodes
from support import workload_objects as objects

GPU = {"gpu": "true"}
NEW, OLD = {placing.LABEL_HASH: "new"}, {placing.LABEL_HASH: "old"}
NODES = [objects.node(name, labels=GPU) for name in ("a", "b", "c")]


def daemon_set(**strategy):
    return objects.workload(
        "DaemonSet",
        "dp",
        spec={"updateStrategy": strategy or {"type": "RollingUpdate"}},
        pod_spec={"nodeSelector": GPU},
    )


def rolling(**parameters):
    return daemon_set(type="RollingUpdate", rollingUpdate=parameters)


def view(pods, *, nodes=NODES, of=None):
    return View(daemon_set=of or daemon_set(), revision_hash="new", nodes=nodes, pods=pods, now=objects.NOW)


def pod(node, labels=NEW, *, ready=True, **more):
    return objects.pod(f"{node}-{labels[placing.LABEL_HASH]}", node=node, labels=labels, ready=ready, **more)


def outcome(actions):
    """Nodes that get a pod, and names of pods that go."""
    return list(actions.create), [gone["metadata"]["name"] for gone in actions.delete]


def tainted(name, key, effect):
    return objects.node(name, labels=GPU, taints=[{"key": key, "effect": effect}])


@pytest.mark.parametrize(
    ("node", "should_run", "should_continue"),
    [
        pytest.param(NODES[0], True, True, id="fits"),
        pytest.param(objects.node("x"), False, False, id="label is missing"),
        pytest.param(tainted("x", "custom", "NoSchedule"), False, True, id="NoSchedule lets a pod stay"),
        pytest.param(tainted("x", "custom", "NoExecute"), False, False, id="NoExecute does not"),
        pytest.param(tainted("x", taints.UNREACHABLE, "NoExecute"), True, True, id="an unreachable node keeps its pod"),
        pytest.param(tainted("x", taints.UNSCHEDULABLE, "NoSchedule"), True, True, id="a cordoned node gets one"),
        pytest.param(tainted("x", taints.NETWORK_UNAVAILABLE, "NoSchedule"), False, True, id="without a network"),
    ],
)
def test_placement(node, should_run, should_continue):
    """Selectors and taints decide, with the tolerations that every pod of a DaemonSet has."""
    placement = placing.build_placement(daemon_set(), node)

    assert (placement.should_run, placement.should_continue) == (should_run, should_continue)


def test_build_pod():
    """A pod is pinned to its node, tolerates what DaemonSets tolerate, and knows its template."""
    of = objects.workload("DaemonSet", "dp", pod_spec={"hostNetwork": True, "tolerations": [{"operator": "Exists"}]})
    of["metadata"]["annotations"] = {placing.ANNOTATION_GENERATION: "3"}
    built = placing.build_pod(of, "gpu01", "abc")
    spec = built["spec"]

    assert built["metadata"]["labels"] == {"app": "dp", placing.LABEL_HASH: "abc", placing.LABEL_GENERATION: "3"}
    assert spec["tolerations"][0] == {"operator": "Exists"}
    assert {(each["key"], each["effect"]) for each in spec["tolerations"][1:]} == {
        (taints.NOT_READY, "NoExecute"),
        (taints.UNREACHABLE, "NoExecute"),
        (taints.DISK_PRESSURE, "NoSchedule"),
        (taints.MEMORY_PRESSURE, "NoSchedule"),
        (taints.PID_PRESSURE, "NoSchedule"),
        (taints.UNSCHEDULABLE, "NoSchedule"),
        (taints.NETWORK_UNAVAILABLE, "NoSchedule"),
    }
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required["nodeSelectorTerms"] == [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gpu01"]}]}
    ]


@pytest.mark.parametrize(
    ("pods", "nodes", "create", "delete"),
    [
        pytest.param([], NODES, ["a", "b", "c"], [], id="one a node"),
        pytest.param([pod("a"), pod("b"), pod("c")], NODES, [], [], id="all there"),
        pytest.param([pod("a"), pod("gone")], NODES[:1], [], ["gone-new"], id="node is gone"),
        pytest.param([pod("x")], [objects.node("x")], [], ["x-new"], id="node no longer matches"),
        pytest.param([pod("x")], [tainted("x", "custom", "NoExecute")], [], ["x-new"], id="driven out"),
        pytest.param([pod("x")], [tainted("x", "custom", "NoSchedule")], [], [], id="may stay"),
        pytest.param([pod("a", terminating=True)], NODES[:1], [], [], id="waits for the one that goes"),
        pytest.param(
            [pod("a", terminating=True, ready=False, phase="Failed")], NODES[:1], ["a"], [], id="but not for ever"
        ),
        pytest.param([pod("a", ready=False, phase="Failed")], NODES[:1], [], ["a-new"], id="failed"),
        pytest.param([pod("a", OLD, age=1), pod("a", age=9)], NODES[:1], [], ["a-old"], id="the oldest of two stays"),
    ],
)
def test_presence(pods, nodes, create, delete):
    """Missing pods come, superfluous ones go."""
    assert outcome(deciding.build_actions(view(pods, nodes=nodes))) == (create, delete)


def test_held():
    """A pod that keeps failing stays for a while, so that people can look at it and the node is not worn out."""
    failed = [pod("a", ready=False, phase="Failed")]
    actions = deciding.build_actions(view(failed, nodes=NODES[:1]), held={"a"})

    assert actions.is_empty
    assert not actions.ended


@pytest.mark.parametrize(
    ("of", "pods", "delete"),
    [
        pytest.param(daemon_set(), [pod("a", OLD), pod("b", OLD), pod("c", OLD)], ["a-old"], id="one at a time"),
        pytest.param(
            daemon_set(), [pod("a", ready=False), pod("b", OLD), pod("c", OLD)], [], id="waits for the new one"
        ),
        pytest.param(daemon_set(), [pod("a"), pod("b", OLD), pod("c", OLD)], ["b-old"], id="then the next"),
        pytest.param(
            daemon_set(),
            [pod("a", OLD), pod("b", OLD, ready=False), pod("c", OLD)],
            ["b-old", "a-old"],
            id="broken first",
        ),
        pytest.param(
            daemon_set(),
            [pod("a", OLD, terminating=True), pod("b", OLD), pod("c", OLD)],
            [],
            id="waits for one that goes",
        ),
        pytest.param(
            rolling(maxUnavailable=2),
            [pod("a", OLD), pod("b", OLD), pod("c", OLD)],
            ["a-old", "b-old"],
            id="two at a time",
        ),
        pytest.param(
            rolling(maxUnavailable="50%"),
            [pod("a", OLD), pod("b", OLD), pod("c", OLD)],
            ["a-old", "b-old"],
            id="percent, rounded up",
        ),
        pytest.param(daemon_set(type="OnDelete"), [pod("a", OLD), pod("b", OLD), pod("c", OLD)], [], id="OnDelete"),
    ],
)
def test_replacement(of, pods, delete):
    """Old pods are deleted as fast as the strategy allows; new ones take their place."""
    assert outcome(deciding.build_actions(view(pods, of=of))) == ([], delete)


SURGE = rolling(maxSurge=1, maxUnavailable=0)


@pytest.mark.parametrize(
    ("pods", "create", "delete"),
    [
        pytest.param([pod("a", OLD), pod("b", OLD), pod("c", OLD)], ["a"], [], id="a new one beside the old"),
        pytest.param(
            [pod("a", OLD), pod("a", ready=False), pod("b", OLD), pod("c", OLD)], [], [], id="both until it works"
        ),
        pytest.param(
            [pod("a", OLD), pod("a"), pod("b", OLD), pod("c", OLD)], [], ["a-old"], id="then the old one goes"
        ),
        pytest.param([pod("a"), pod("b", OLD), pod("c", OLD)], ["b"], [], id="then the next"),
        pytest.param(
            [pod("a", OLD, ready=False), pod("a", ready=False), pod("b"), pod("c")],
            [],
            ["a-old"],
            id="a broken one at once",
        ),
    ],
)
def test_surge(pods, create, delete):
    """With a surge no node is ever without a working pod."""
    assert outcome(deciding.build_actions(view(pods, of=SURGE))) == (create, delete)


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param(
            [],
            {"currentNumberScheduled": 0, "desiredNumberScheduled": 3, "numberReady": 0, "numberUnavailable": 3},
            id="none yet",
        ),
        pytest.param(
            [pod("a"), pod("b", OLD), pod("c", ready=False)],
            {
                "currentNumberScheduled": 3,
                "desiredNumberScheduled": 3,
                "numberReady": 2,
                "numberAvailable": 2,
                "numberUnavailable": 1,
                "updatedNumberScheduled": 2,
            },
            id="in the middle",
        ),
        pytest.param(
            [pod("a"), pod("b"), pod("c")],
            {
                "currentNumberScheduled": 3,
                "desiredNumberScheduled": 3,
                "numberReady": 3,
                "numberAvailable": 3,
                "updatedNumberScheduled": 3,
            },
            id="done",
        ),
    ],
)
def test_status(pods, expected):
    """The status has the fields that the real one has, zeroes left out where it leaves them out."""
    assert status.build_status(view(pods)) == {"numberMisscheduled": 0, "observedGeneration": 1} | expected


def test_status_misscheduled():
    """A pod on a node that would not get one is counted apart."""
    found = status.build_status(view([pod("x")], nodes=[tainted("x", "custom", "NoSchedule")]))

    assert (found["numberMisscheduled"], found["desiredNumberScheduled"]) == (1, 0)


def test_seconds_until_change():
    """With minReadySeconds, time alone makes a pod available."""
    of = objects.workload("DaemonSet", "dp", spec={"minReadySeconds": 30})

    assert status.seconds_until_change(view([pod("a")], of=of)) == 30
    assert status.seconds_until_change(view([pod("a")])) is None


def test_held_nodes():
    """Each failure on a node doubles the wait; after a quiet time it starts afresh."""
    held = HeldNodes()
    held.hold("a", 0)
    assert held.names(0.5) == {"a"}
    assert held.seconds_until_free(0.5) == 0.5
    assert held.names(1) == frozenset()
    held.hold("a", 1)
    assert held.seconds_until_free(1) == 2
    held.hold("a", 2000)
    assert held.seconds_until_free(2000) == 1
    assert HeldNodes().seconds_until_free(0) is None
