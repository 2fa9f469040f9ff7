"""Kubernetes objects to the slim values of a snapshot. Called by the controller for every object that a watch brings."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.amounts import count_of
from gpushare.domain.conditions import Condition
from gpushare.domain.gpunode import GPUNode
from gpushare.domain.manifests import Manifest
from gpushare.plan import discovery
from gpushare.plan.snapshot import AgentPod, ConfigMap, LiveObject, Node, Policy, Rollout

_OF_OTHERS = frozenset(
    (names.LABEL_ACK_SCHEDULE, names.LABEL_ACK_PLACEMENT, names.LABEL_DISABLE_ISOLATION, names.LABEL_HAMI_NODE)
)
"""Labels of other GPU sharing systems that count here too."""
_BULKY = ("devices", "allocations")
"""Parts of a GPUNode's status that are large and decide nothing here."""
_OFFERED = ("name", "total", "healthy")
"""What of a resource does not change with every pod."""


def policy_of(manifest: Manifest) -> Policy:
    """A ClusterPolicy."""
    metadata, status = manifest["metadata"], manifest.get("status") or {}
    return Policy(
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        generation=metadata.get("generation", 0),
        created=metadata.get("creationTimestamp") or "",
        deleting=bool(metadata.get("deletionTimestamp")),
        spec=manifest.get("spec"),
        state=status.get("state", ""),
        namespace=status.get("namespace", ""),
        conditions=tuple(map(Condition.from_json, status.get("conditions") or ())),
    )


def config_map_of(manifest: Manifest) -> ConfigMap:
    """A ConfigMap of the operator's namespace."""
    return ConfigMap(
        name=manifest["metadata"]["name"],
        uid=manifest["metadata"].get("uid", ""),
        data=dict(manifest.get("data") or {}),
        binary=frozenset(manifest.get("binaryData") or ()),
    )


def node_of(manifest: Manifest) -> Node:
    """A Node. Texts are interned: 5,000 nodes say the same 50 things."""
    metadata = manifest["metadata"]
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    managed = metadata.get("managedFields") or ()
    return Node(
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        labels={
            sys.intern(key): sys.intern(value)
            for key, value in labels.items()
            if key.startswith(names.PREFIX) or key in _OF_OTHERS or discovery.is_feature(key)
        },
        owned=frozenset(map(sys.intern, _owned_labels(managed))),
        writers=_writers(managed),
        maintained=frozenset(_maintained_labels(annotations)),
        opted_out=frozenset(filter(None, annotations.get(names.ANNOTATION_OPTED_OUT, "").split(","))),
        tainted=any(
            taint.get("key") == names.TAINT_FRACTIONS for taint in (manifest.get("spec") or {}).get("taints") or ()
        ),
        runtime=sys.intern(_runtime_of(manifest)),
        resources=_resources_of(manifest),
        discovered=any(key.startswith(names.PREFIX_NFD) for key in labels),
        resource_version=metadata.get("resourceVersion", ""),
    )


def pod_security_of(namespace: Manifest) -> dict[str, str]:
    """The labels of a namespace that our own field manager applied."""
    metadata = namespace["metadata"]
    labels = metadata.get("labels") or {}
    applied = {
        field.removeprefix("f:")
        for entry in metadata.get("managedFields") or ()
        if entry.get("manager") == names.MANAGER_CONTROLLER and entry.get("operation") == "Apply"
        for field in entry.get("fieldsV1", {}).get("f:metadata", {}).get("f:labels", {})
    }
    return {key: value for key, value in labels.items() if key in applied}


def _resources_of(node: Manifest) -> dict[str, tuple[int, int]]:
    """What device plugins offer there; their amounts are whole numbers."""
    status = node.get("status") or {}
    capacity, allocatable = status.get("capacity") or {}, status.get("allocatable") or {}
    return {
        sys.intern(name): (count_of(amount), count_of(allocatable.get(name, 0)))
        for name, amount in capacity.items()
        if "/" in name
    }


def _runtime_of(node: Manifest) -> str:
    info = (node.get("status") or {}).get("nodeInfo") or {}
    return str(info.get("containerRuntimeVersion", "")).partition(":")[0]


def _owned_labels(entries: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    # What a program under our name only updated is no application of ours.
    for entry in entries:
        if entry.get("manager") == names.MANAGER_CONTROLLER and entry.get("operation") == "Apply":
            yield from _labels_of(entry)


def _writers(entries: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Who else wrote which label of NVIDIA's ecosystem."""
    others = [entry for entry in entries if entry.get("manager") != names.MANAGER_CONTROLLER]
    return {
        sys.intern(key): sys.intern(str(entry.get("manager", "")))
        for entry in others
        for key in _labels_of(entry)
        if key.startswith(names.PREFIX)
    }


def _labels_of(entry: Mapping[str, Any]) -> Iterable[str]:
    fields = entry.get("fieldsV1", {}).get("f:metadata", {}).get("f:labels", {})
    return (field[2:] for field in fields if field.startswith("f:"))


def _maintained_labels(annotations: Mapping[str, str]) -> Iterable[str]:
    for key, value in annotations.items():
        if key.endswith(names.ANNOTATION_NFD_LABELS):  # before it, the instance, where there are several
            yield from (sys.intern(label) for label in value.split(",") if label.startswith(names.PREFIX))


def gpu_node_of(manifest: Manifest) -> GPUNode:
    """A GPUNode without what no decision here depends on: devices, allocations, numbers in use."""
    status = {key: value for key, value in (manifest.get("status") or {}).items() if key not in _BULKY}
    if "resources" in status:
        status["resources"] = [{key: one[key] for key in _OFFERED if key in one} for one in status["resources"]]
    metadata = {key: value for key, value in manifest["metadata"].items() if key != "resourceVersion"}
    return GPUNode.from_json({"metadata": metadata, "spec": manifest.get("spec"), "status": status})


def live_object_of(manifest: Manifest) -> LiveObject:
    """An object of a kind that components are made of. Raises KeyError for a kind that this project never writes."""
    metadata = manifest["metadata"]
    labels = metadata.get("labels") or {}
    controller = next((owner for owner in metadata.get("ownerReferences") or () if owner.get("controller")), None)
    return LiveObject(
        key=manifests.key_of(manifest),
        uid=metadata.get("uid", ""),
        managed=labels.get(names.LABEL_MANAGED_BY) == names.CONTROLLER,
        component=labels.get(names.LABEL_COMPONENT, ""),
        controller=controller["uid"] if controller else "",
        controller_name=f"{controller['kind']} {controller['name']}" if controller else "",
        rollout=_rollout_of(manifest) if manifest["kind"] == manifests.DAEMON_SET.kind else None,
    )


def _rollout_of(manifest: Manifest) -> Rollout:
    status = manifest.get("status") or {}
    strategy = (manifest.get("spec") or {}).get("updateStrategy") or {}
    return Rollout(
        generation=manifest["metadata"].get("generation", 0),
        observed=status.get("observedGeneration", 0),
        desired=status.get("desiredNumberScheduled", 0),
        updated=status.get("updatedNumberScheduled", 0),
        available=status.get("numberAvailable", 0),
        unavailable=status.get("numberUnavailable", 0),
        on_delete=strategy.get("type") == "OnDelete",
    )


def agent_pod_of(manifest: Manifest) -> AgentPod | None:
    """A pod of the agent's DaemonSet; None while it is not bound to a node, or on its way out."""
    metadata, status = manifest["metadata"], manifest.get("status") or {}
    node = (manifest.get("spec") or {}).get("nodeName", "")
    if not node or metadata.get("deletionTimestamp"):
        return None
    ready = any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in status.get("conditions") or ()
    )
    return AgentPod(node=node, name=metadata["name"], ready=ready, trouble="" if ready else _trouble_of(status))


def _trouble_of(status: Mapping[str, Any]) -> str:
    """One word that stays the same while the trouble does: each new word is a write of the policy's status."""
    for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        state = container.get("state") or {}
        reason = (state.get("waiting") or {}).get("reason", "")
        if "Image" in reason:
            return "ImagePullBackOff"
        if "terminated" in (container.get("lastState") or {}) or (
            "terminated" in state and container.get("restartCount")
        ):
            return "CrashLoopBackOff"
        if reason not in {"", "ContainerCreating", "PodInitializing"}:  # what every pod goes through
            return str(reason)
    return str(status.get("reason") or "")
