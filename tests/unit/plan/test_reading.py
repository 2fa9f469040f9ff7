"""Kubernetes objects to slim values."""

from __future__ import annotations

from typing import Any

import pytest

from gpushare import names
from gpushare.domain.gpunode import Config
from gpushare.domain.manifests import Manifest
from gpushare.plan import reading
from gpushare.plan.snapshot import Rollout


def manifest(kind: str, version: str = "v1", *, name: str = "x", **parts: Any) -> Manifest:
    metadata = {"name": name, "uid": "u", "resourceVersion": "1", **parts.pop("metadata", {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **parts}


def node_with(*, version: str = "1", heartbeat: str = "a") -> Manifest:
    entries = [
        {"manager": names.MANAGER_CONTROLLER, "operation": "Apply",
         "fieldsV1": {"f:metadata": {"f:labels": {"f:nvidia.com/gpu.present": {}}}}},
        {"manager": names.MANAGER_CONTROLLER, "operation": "Update",
         "fieldsV1": {"f:metadata": {"f:labels": {"f:nvidia.com/gpu.count": {}}}}},
        {"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:status": {}}},
    ]  # fmt: skip
    labels = {names.LABEL_PRESENT: "true", names.LABELS_NFD_GPU[1]: "true", "kubernetes.io/hostname": "x"}
    return manifest(
        "Node",
        metadata={"labels": labels, "managedFields": entries, "resourceVersion": version},
        status={"time": heartbeat},
    )


def test_node() -> None:
    """Labels that count, and which of them are ours."""
    node = reading.node_of(node_with())

    assert node.labels == {names.LABEL_PRESENT: "true", names.LABELS_NFD_GPU[1]: "true"}
    assert node.owned == {names.LABEL_PRESENT}
    assert node.discovered
    assert not reading.node_of(manifest("Node")).discovered


def test_amounts() -> None:
    """What device plugins offer, as the API server writes it: it makes `1k` of 1000."""
    status = {
        "capacity": {"cpu": "8", "nvidia.com/gpu": "1k", "x.dev/odd": "1500m"},
        "allocatable": {"cpu": "7900m", "nvidia.com/gpu": "999"},
    }

    assert reading.node_of(manifest("Node", status=status)).resources == {
        "nvidia.com/gpu": (1000, 999),
        "x.dev/odd": (0, 0),
    }


def test_heartbeat_is_no_change() -> None:
    """A node whose version and status move is the same node to a plan."""
    assert reading.node_of(node_with()) == reading.node_of(node_with(version="2", heartbeat="b"))


def test_gpu_node() -> None:
    """What changes with every pod is not there; what decides is."""
    config = {"reason": "none", "revision": "", "content": "", "migStrategy": "mixed"}
    busy, idle = (
        manifest(
            "GPUNode", "gpushare.dev/v1alpha1",
            metadata={"resourceVersion": version, "generation": 3,
                      "ownerReferences": [{"kind": "Node", "name": "x", "uid": "n"}]},
            spec={"config": config},
            status={"appliedRevision": "", "labels": {"a": "b"}, "allocations": allocations, "devices": [{"index": 0}],
                    "resources": [{"name": "r", "allocated": len(allocations)}]},
        )
        for version, allocations in (("1", [{"index": 0, "containers": []}]), ("2", []))
    )  # fmt: skip

    found = reading.gpu_node_of(busy)

    assert found == reading.gpu_node_of(idle)
    assert (found.uid, found.node_uid, found.generation, found.config) == ("u", "n", 3, Config(mig_strategy="mixed"))
    assert (found.status.applied_revision, found.status.labels) == ("", {"a": "b"})


def test_policy() -> None:
    """A policy with and without what people leave out."""
    full = reading.policy_of(
        manifest(
            "ClusterPolicy", "nvidia.com/v1", metadata={"generation": 2, "creationTimestamp": "t", "deletionTimestamp": "t"},
            spec={"a": 1}, status={"state": "ready", "namespace": "ns", "conditions": [{"type": "Ready"}]},
        )
    )  # fmt: skip
    bare = reading.policy_of(manifest("ClusterPolicy", "nvidia.com/v1", status=None))

    assert (full.generation, full.created, full.deleting, full.state, full.namespace) == (2, "t", True, "ready", "ns")
    assert [condition.type for condition in full.conditions] == ["Ready"]
    assert (bare.spec, bare.deleting, bare.conditions) == (None, False, ())


def test_config_map() -> None:
    """Texts, and the names of what is no text."""
    found = reading.config_map_of(manifest("ConfigMap", data={"a": "1"}, binaryData={"b": "AA=="}))

    assert (found.data, found.binary) == ({"a": "1"}, {"b"})
    assert reading.config_map_of(manifest("ConfigMap", data=None)).data == {}


def test_live_object() -> None:
    """Whose it is, who controls it, how far it is."""
    found = reading.live_object_of(
        manifest(
            "DaemonSet", "apps/v1",
            metadata={"namespace": "ns", "generation": 2,
                      "labels": {names.LABEL_MANAGED_BY: names.CONTROLLER, names.LABEL_COMPONENT: "device-plugin"},
                      "ownerReferences": [{"kind": "A", "name": "a", "uid": "1"},
                                          {"kind": "ClusterPolicy", "name": "p", "uid": "2", "controller": True}]},
            spec={"updateStrategy": {"type": "OnDelete"}},
            status={"observedGeneration": 1, "desiredNumberScheduled": 3, "updatedNumberScheduled": 2, "numberAvailable": 1,
                    "numberUnavailable": 2},
        )
    )  # fmt: skip
    bare = reading.live_object_of(manifest("ServiceAccount", metadata={"namespace": "ns"}))

    assert (found.managed, found.component) == (True, "device-plugin")
    assert (found.controller, found.controller_name) == ("2", "ClusterPolicy p")
    assert found.rollout == Rollout(
        generation=2, observed=1, desired=3, updated=2, available=1, unavailable=2, on_delete=True
    )
    assert (bare.managed, bare.controller, bare.rollout) == (False, "", None)


def waiting(reason: str, **more: Any) -> dict[str, Any]:
    return {"containerStatuses": [{"state": {"waiting": {"reason": reason}}, **more}]}


@pytest.mark.parametrize(
    ("status", "ready", "trouble"),
    [
        pytest.param({"conditions": [{"type": "Ready", "status": "True"}]}, True, "", id="ready"),
        pytest.param({}, False, "", id="starting"),
        pytest.param(waiting("ContainerCreating"), False, "", id="what every pod goes through"),
        pytest.param(waiting("CreateContainerConfigError"), False, "CreateContainerConfigError", id="waiting"),
        pytest.param(waiting("ErrImagePull"), False, "ImagePullBackOff", id="no image"),
        pytest.param(waiting("ImagePullBackOff"), False, "ImagePullBackOff", id="still no image"),
        pytest.param(waiting("CrashLoopBackOff", lastState={"terminated": {}}), False, "CrashLoopBackOff", id="crashed"),
        pytest.param({"containerStatuses": [{"state": {"running": {}}, "lastState": {"terminated": {}}}]}, False,
                     "CrashLoopBackOff", id="about to crash again"),
        pytest.param({"containerStatuses": [{"state": {"terminated": {}}, "restartCount": 1}]}, False, "CrashLoopBackOff",
                     id="just crashed again"),
        pytest.param({"phase": "Failed", "reason": "Evicted"}, False, "Evicted", id="failed"),
    ],
)  # fmt: skip
def test_agent_pod(status: dict[str, Any], ready: bool, trouble: str) -> None:
    """Ready or not, and one word for the trouble, which does not flip while the trouble is the same."""
    pod = reading.agent_pod_of(manifest("Pod", spec={"nodeName": "gpu01"}, status=status))

    assert pod is not None
    assert (ready, trouble) == (pod.ready, pod.trouble)


def test_agent_pod_that_does_not_count() -> None:
    """A pod without a node, or on its way out, says nothing about a node."""
    assert reading.agent_pod_of(manifest("Pod", spec={})) is None
    assert reading.agent_pod_of(manifest("Pod", metadata={"deletionTimestamp": "t"}, spec={"nodeName": "x"})) is None
