"""What node controllers make of a Node."""

from __future__ import annotations

import pytest

from gpushare.sandbox.scheduling import taints
from gpushare.sandbox.workloads.nodes import evicting, repairing, silence
from support import workload_objects as objects

NOW = objects.NOW
NOT_READY = {"key": taints.NOT_READY, "effect": "NoSchedule"}
CUSTOM = {"key": "custom", "value": "x", "effect": "NoExecute"}


def repaired(node, networks=()):
    """Repaired again and again: the second time nothing is left to do."""
    found = repairing.build_repaired(node, networks, NOW)
    if found is not None:
        assert repairing.build_repaired(found, networks, NOW) is None
    return found or node


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        pytest.param(objects.node(taints=[NOT_READY]), {(taints.NOT_READY, "NoSchedule")}, id="not heard of yet"),
        pytest.param(objects.node(taints=[NOT_READY], conditions={"Ready": "True"}), set(), id="ready"),
        pytest.param(
            objects.node(conditions={"Ready": "False"}),
            {(taints.NOT_READY, "NoSchedule"), (taints.NOT_READY, "NoExecute")},
            id="not ready",
        ),
        pytest.param(
            objects.node(taints=[NOT_READY], conditions={"Ready": "Unknown"}),
            {(taints.UNREACHABLE, "NoSchedule"), (taints.UNREACHABLE, "NoExecute")},
            id="silent",
        ),
        pytest.param(
            objects.node(conditions={"Ready": "True", "MemoryPressure": "True", "DiskPressure": "False"}),
            {(taints.MEMORY_PRESSURE, "NoSchedule")},
            id="under pressure",
        ),
        pytest.param(
            objects.node(conditions={"Ready": "True"}, unschedulable=True),
            {(taints.UNSCHEDULABLE, "NoSchedule")},
            id="cordoned",
        ),
        pytest.param(
            objects.node(
                conditions={"Ready": "True"}, taints=[CUSTOM, {"key": taints.UNSCHEDULABLE, "effect": "NoSchedule"}]
            ),
            {("custom", "NoExecute")},
            id="uncordoned; what people tainted stays",
        ),
    ],
)
def test_taints(node, expected):
    """Taints follow conditions, and only ours."""
    found = repaired(node)["spec"].get("taints", [])

    assert {(taint["key"], taint["effect"]) for taint in found} == expected


def test_labels_and_annotations():
    """Old labels follow the new ones once the kubelet has spoken; the annotation is there at once."""
    labels = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    new = repaired(objects.node(labels=labels))
    ready = repaired(objects.node(labels=labels, conditions={"Ready": "True"}))

    assert new["metadata"]["annotations"] == {"node.alpha.kubernetes.io/ttl": "0"}
    assert new["metadata"]["labels"] == labels
    assert ready["metadata"]["labels"] == labels | {
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "amd64",
    }


def test_network():
    """Each node gets a network of its own for its pods, once."""
    first = repaired(objects.node("a"))
    second = repaired(objects.node("b"), {first["spec"]["podCIDR"]})

    assert first["spec"]["podCIDR"] == "10.244.0.0/24"
    assert (second["spec"]["podCIDR"], second["spec"]["podCIDRs"]) == ("10.244.1.0/24", ["10.244.1.0/24"])
    assert repaired(first, {"10.244.9.0/24"}) == first


@pytest.mark.parametrize(
    ("conditions", "silent", "expected"),
    [
        pytest.param({"Ready": "True"}, 10, 30, id="heard of"),
        pytest.param({"Ready": "True"}, 99, 0, id="silent"),
        pytest.param({"Ready": "False"}, 40, 0, id="silent while not ready"),
        pytest.param({"Ready": "Unknown"}, 99, None, id="given up already"),
        pytest.param({}, 45, 15, id="a new one has more time"),
    ],
)
def test_seconds_left(conditions, silent, expected):
    """A node is given up after 40 seconds of silence."""
    assert silence.seconds_left(objects.node(conditions=conditions), silent) == expected


def test_unknown():
    """A node that is given up says of all its conditions that nobody knows, and why."""
    found = silence.build_unknown(objects.node(conditions={"Ready": "True"}), NOW)

    assert [(each["type"], each["status"], each["reason"]) for each in found[:2]] == [
        ("Ready", "Unknown", "NodeStatusUnknown"),
        ("MemoryPressure", "Unknown", "NodeStatusNeverUpdated"),
    ]
    assert found[0]["message"] == "Kubelet stopped posting node status."
    assert len(found) == 4


UNREACHABLE = {"key": taints.UNREACHABLE, "effect": "NoExecute", "timeAdded": objects.TIME}
FIVE_MINUTES = {"key": taints.UNREACHABLE, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}


@pytest.mark.parametrize(
    ("tolerations", "node_taints", "expected"),
    [
        pytest.param([], [], None, id="no taint"),
        pytest.param([], [{"key": "x", "effect": "NoSchedule"}], None, id="a taint that lets pods stay"),
        pytest.param([], [CUSTOM], 0, id="not tolerated"),
        pytest.param([{"operator": "Exists"}], [CUSTOM], None, id="tolerated"),
        pytest.param([FIVE_MINUTES], [UNREACHABLE], 200, id="for a while"),
        pytest.param([FIVE_MINUTES], [UNREACHABLE, CUSTOM], 0, id="the shortest counts"),
    ],
)
def test_eviction(tolerations, node_taints, expected):
    """How long a pod may stay on a tainted node."""
    pod = objects.pod(spec={"tolerations": tolerations})

    assert evicting.seconds_left(pod, objects.node(taints=node_taints), NOW + 100) == expected
