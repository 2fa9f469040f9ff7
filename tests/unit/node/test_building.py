"""The Node and its Lease."""

from __future__ import annotations

from gpushare.sandbox.node import building
from gpushare.sandbox.node.devices import Counts
from gpushare.sandbox.node.specs import NodeSpec, Taint

SPEC = NodeSpec(
    name="gpu01",
    labels={"rack": "r1", "kubernetes.io/os": "plan9"},
    taints=(Taint(key="nvidia.com/gpu", effect="NoSchedule"), Taint(key="a", effect="NoExecute", value="b")),
    cpu="8",
    memory="16Gi",
    ephemeral_storage="100Gi",
)


def test_node() -> None:
    """What a kubelet registers; its own labels beat others."""
    node = building.build_node(SPEC, 10250, "2026-01-01T00:00:00Z")

    assert node["metadata"]["labels"] == {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": "gpu01",
        "kubernetes.io/os": "linux",
        "rack": "r1",
    }
    assert node["spec"]["taints"] == [
        {"key": "nvidia.com/gpu", "effect": "NoSchedule"},
        {"key": "a", "value": "b", "effect": "NoExecute"},
    ]
    status = node["status"]
    assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 10250}}
    assert {one["type"]: one["reason"] for one in status["conditions"]} == {
        "MemoryPressure": "KubeletHasSufficientMemory",
        "DiskPressure": "KubeletHasNoDiskPressure",
        "PIDPressure": "KubeletHasSufficientPID",
        "Ready": "KubeletReady",
    }
    assert building.build_node(SPEC, 1, "x")["status"]["nodeInfo"] == status["nodeInfo"], (
        "one machine keeps its identity"
    )


def test_amounts() -> None:
    """Allocatable is what is left after the eviction thresholds; sick devices count in the capacity only."""
    amounts = building.build_amounts(SPEC, {"nvidia.com/gpu": Counts(capacity=4, allocatable=3), "x.y/gone": Counts()})

    assert amounts["capacity"] == {
        "cpu": "8",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "pods": "110",
        "memory": "16777216Ki",
        "ephemeral-storage": "104857600Ki",
        "nvidia.com/gpu": "4",
        "x.y/gone": "0",
    }
    assert amounts["allocatable"]["memory"] == "16674816Ki"
    assert amounts["allocatable"]["ephemeral-storage"] == "96636764160"
    assert (amounts["allocatable"]["nvidia.com/gpu"], amounts["allocatable"]["x.y/gone"]) == ("3", "0")


def test_lease() -> None:
    """Owned by the Node, so that it goes with it."""
    lease = building.build_lease({"metadata": {"name": "gpu01", "uid": "u1"}}, "2026-01-01T00:00:00.000000Z")
    assert lease["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "gpu01", "uid": "u1"},
    ]
    assert lease["spec"]["holderIdentity"] == "gpu01"
    assert lease["spec"]["leaseDurationSeconds"] == 40
