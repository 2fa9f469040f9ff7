"""Kubernetes objects to the slim values of a snapshot. Called by the controller for every object that a watch brings."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.conditions import Condition
from gpushare.domain.gpunode import GPUNode
from gpushare.domain.manifests import Manifest
from gpushare.plan.snapshot import AgentPod, ConfigMap, LiveObject, Node, Policy, Rollout

_OF_OTHERS = frozenset(
    (names.LABEL_ACK_SCHEDULE, names.LABEL_ACK_PLACEMENT, names.LABEL_DISABLE_ISOLATION, names.LABEL_HAMI_NODE)
)
"""Labels of other GPU sharing systems that count here too."""
_BULKY = ("devices", "allocations", "resources")
"""Parts of a GPUNode's status that change with every pod and decide nothing here."""


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
    labels = metadata.get("labels") or {}
    return Node(
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        labels={
            sys.intern(key): sys.intern(value)
            for key, value in labels.items()
            if key.startswith(names.PREFIX) or key in _OF_OTHERS or key in names.LABELS_NFD_GPU
        },
        owned=frozenset(map(sys.intern, _owned_labels(metadata.get("managedFields") or ()))),
        tainted=any(
            taint.get("key") == names.TAINT_FRACTIONS for taint in (manifest.get("spec") or {}).get("taints") or ()
        ),
        discovered=any(key.startswith(names.PREFIX_NFD) for key in labels),
        resource_version=metadata.get("resourceVersion", ""),
    )


def _owned_labels(entries: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    for entry in entries:
        if entry.get("manager") == names.MANAGER_CONTROLLER and entry.get("operation") == "Apply":
            fields = entry.get("fieldsV1", {}).get("f:metadata", {}).get("f:labels", {})
            yield from (field[2:] for field in fields if field.startswith("f:"))


def gpu_node_of(manifest: Manifest) -> GPUNode:
    """A GPUNode without what no decision here depends on: devices, allocations, numbers in use."""
    status = {key: value for key, value in (manifest.get("status") or {}).items() if key not in _BULKY}
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
    return Rollout(
        generation=manifest["metadata"].get("generation", 0),
        observed=status.get("observedGeneration", 0),
        desired=status.get("desiredNumberScheduled", 0),
        updated=status.get("updatedNumberScheduled", 0),
        available=status.get("numberAvailable", 0),
        unavailable=status.get("numberUnavailable", 0),
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
