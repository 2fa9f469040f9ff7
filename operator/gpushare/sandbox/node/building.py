"""The Node object and its Lease as a kubelet writes them. Pure; called by `registering`."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from math import floor
from typing import Any

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.objects import quantities
from gpushare.sandbox.node.devices import Counts
from gpushare.sandbox.node.specs import KUBELET_VERSION, NodeSpec
from gpushare.sandbox.node.statuses import HOST_IP

LEASE_NAMESPACE = "kube-node-lease"
LEASE_SECONDS = 40
_EVICTION_MEMORY = 100 * 2**20
"""Hard eviction threshold of memory: what a kubelet holds back from pods by default."""
_EVICTION_STORAGE = 0.9
_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


def build_default_labels(spec: NodeSpec) -> dict[str, str]:
    """Labels that every kubelet sees to, whatever else the node is labelled with."""
    return {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": spec.name,
        "kubernetes.io/os": "linux",
    }


def build_node(spec: NodeSpec, port: int, now: str) -> Manifest:
    """The Node to register; `port` is where the kubelet serves logs."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": spec.name,
            "labels": {**spec.labels, **build_default_labels(spec)},
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        },
        "spec": {"taints": [taint.to_json() for taint in spec.taints]} if spec.taints else {},
        "status": build_status(spec, port, {}, now, now),
    }


def build_status(spec: NodeSpec, port: int, devices: Mapping[str, Counts], since: str, now: str) -> dict[str, Any]:
    """The Node's status. `since` is when it became ready, `now` the heartbeat."""
    return {
        **build_amounts(spec, devices),
        "conditions": build_conditions(since, now),
        "addresses": [
            {"type": "InternalIP", "address": HOST_IP},
            {"type": "Hostname", "address": spec.name},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "nodeInfo": _node_info(spec),
    }


def build_conditions(since: str, now: str) -> list[dict[str, Any]]:
    """A node on which all is well."""
    return [
        {
            "type": type_,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": now,
            "lastTransitionTime": since,
        }
        for type_, status, reason, message in _CONDITIONS
    ]


def build_amounts(spec: NodeSpec, devices: Mapping[str, Counts]) -> dict[str, dict[str, str]]:
    """`capacity` and `allocatable`, which is what a changed device list changes."""
    memory, storage = quantities.parse_int(spec.memory), quantities.parse_int(spec.ephemeral_storage)
    same = {"cpu": spec.cpu, "hugepages-1Gi": "0", "hugepages-2Mi": "0", "pods": str(spec.pods)}
    return {
        "capacity": {
            **same,
            "memory": f"{memory // 1024}Ki",
            "ephemeral-storage": f"{storage // 1024}Ki",
            **{name: str(counts.capacity) for name, counts in devices.items()},
        },
        "allocatable": {
            **same,
            "memory": f"{max(0, memory - _EVICTION_MEMORY) // 1024}Ki",
            "ephemeral-storage": str(floor(storage * _EVICTION_STORAGE)),
            **{name: str(counts.allocatable) for name, counts in devices.items()},
        },
    }


def _node_info(spec: NodeSpec) -> dict[str, Any]:
    def identity(of: str) -> uuid.UUID:
        return uuid.uuid5(uuid.NAMESPACE_DNS, f"{of}.{spec.name}")

    return {
        "architecture": "amd64",
        "bootID": str(identity("boot")),
        "containerRuntimeVersion": "containerd://2.2.1",
        "kernelVersion": spec.kernel,
        "kubeProxyVersion": "",
        "kubeletVersion": KUBELET_VERSION,
        "machineID": identity("machine").hex,
        "operatingSystem": "linux",
        "osImage": spec.os_image,
        "systemUUID": str(identity("system")),
    }


def build_lease(node: Manifest, now: str) -> Manifest:
    """The Lease that says the node is alive, owned by the Node; `now` with microseconds."""
    name = node["metadata"]["name"]
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": name,
            "namespace": LEASE_NAMESPACE,
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}],
        },
        "spec": {"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": now},
    }
