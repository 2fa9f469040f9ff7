"""What the scheduler keeps of a pod, and of a GPUNode's account of it. Read from the watches by `following`."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gpushare import names
from gpushare.domain.fractions import Decision, Grant
from gpushare.domain.gpunode import GPUNodeStatus
from gpushare.domain.manifests import Manifest
from gpushare.placement.gpus import Holding, Use
from gpushare.placement.shapes import WHOLE, Kind, kinds_of
from gpushare.sharing.fractions import REQUESTED

BOUND: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
"""Field selector of the pods that hold something: one that ends leaves the watch as if it were deleted. Its deletion mark
changes nothing, as its containers run on."""
_FOLLOWED: Final = frozenset(REQUESTED.values())
Grants = Mapping[str, tuple[Grant, ...]]
"""By name of the container."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenPod:
    """A pod that is bound and has not ended, as far as it concerns us."""

    uid: str
    namespace: str
    name: str
    node: str
    decision: Decision | None
    """None: it asks for GPUs, and was bound by somebody else."""
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    priority: int = 0
    started: str = ""
    """RFC 3339; since then the kubelet has admitted it, so that all its devices are given out. Empty: not yet."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @classmethod
    def of(cls, pod: Manifest) -> SeenPod:
        """Reads what `trim` has left. A decision that is not about this pod, or is none, counts as not there."""
        metadata = pod["metadata"]
        decision = _decision_of(metadata)
        return cls(
            uid=metadata["uid"],
            namespace=sys.intern(metadata["namespace"]),
            name=metadata["name"],
            node=sys.intern(pod["spec"]["nodeName"]),
            decision=decision,
            kinds={name: kind for name, kind in kinds_of(pod).items() if decision and name in decision.containers},
            priority=pod["spec"]["priority"],
            started=pod["status"]["startTime"],
        )


def trim(pod: Manifest, resources: Collection[str]) -> Manifest | None:
    """Leaves of a pod what `SeenPod.of` reads; None where it has no decision and asks for none of the resources."""
    metadata, spec = pod["metadata"], pod.get("spec") or {}
    text = (metadata.get("annotations") or {}).get(names.ANNOTATION_DECISION)
    if text is None and not _asks_for(spec, resources):
        return None
    return {
        "metadata": {
            "uid": metadata["uid"],
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "annotations": {} if text is None else {names.ANNOTATION_DECISION: text},
        },
        "spec": {
            "nodeName": spec.get("nodeName", ""),
            "priority": int(spec.get("priority") or 0),
            "initContainers": [
                {"name": container["name"], "restartPolicy": container.get("restartPolicy")}
                for container in spec.get("initContainers") or ()
            ],
            "containers": [{"name": container["name"]} for container in spec["containers"]],
        },
        # The kubelet sets it once it has admitted the pod; one that it refuses is Failed, and not in the watch.
        "status": {"startTime": (pod.get("status") or {}).get("startTime") or ""},
    }


def _asks_for(spec: Mapping[str, Any], resources: Collection[str]) -> bool:
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    return any(
        resource in resources
        for container in containers
        for resource in (container.get("resources") or {}).get("limits") or ()
    )


def _decision_of(metadata: Mapping[str, Any]) -> Decision | None:
    text = metadata["annotations"].get(names.ANNOTATION_DECISION)
    if text is None:
        return None
    try:
        decision = Decision.from_annotation(text)
    except ValueError:
        return None
    return decision if decision.pod_uid == metadata["uid"] else None


def read_allocations(status: GPUNodeStatus) -> dict[str, Grants]:
    """What the agent says that pods hold, by uid of the pod."""
    uuids = {int(device["index"]): str(device["uuid"]) for device in status.devices}
    found: dict[str, dict[str, tuple[Grant, ...]]] = {}
    for held in status.allocations:
        if held.pod_uid and held.gpu_index in uuids:
            containers = found.setdefault(held.pod_uid, {})
            grant = Grant(uuids[held.gpu_index], held.memory_mib, held.cores)
            containers[held.container] = (*containers.get(held.container, ()), grant)
    return dict(found)


def read_whole(status: GPUNodeStatus) -> dict[str, Grants]:
    """Whole GPUs of pods without a decision, by namespace and name: those that were there before the node gave out parts."""
    uuids = {int(device["index"]): str(device["uuid"]) for device in status.devices}
    found: dict[str, dict[str, tuple[Grant, ...]]] = {}
    for held in status.allocations:
        if not held.pod_uid and held.gpu_index in uuids:
            containers = found.setdefault(f"{held.namespace}/{held.pod}", {})
            grant = Grant(uuids[held.gpu_index], 0, WHOLE)
            containers[held.container] = (*containers.get(held.container, ()), grant)
    return dict(found)


def read_others(status: GPUNodeStatus) -> Holding:
    """Whole GPUs of pods that nobody here follows: they ask for shares by a name of their own, or for MIG instances.

    Those who ask for what fractions are counted by are in the watch, and so not among them, whether the agent names their uid
    yet or not.
    """
    uuids = {int(device["index"]): str(device["uuid"]) for device in status.devices}
    return {
        uuids[held.gpu_index]: Use(cores=WHOLE, slots=1, alone=1)
        for held in status.allocations
        if not held.pod_uid and held.resource not in _FOLLOWED and held.gpu_index in uuids
    }


def correct(decided: Grants, actual: Grants) -> Grants:
    """What containers hold: as decided, and as the agent says where the kubelet chose other GPUs.

    Limits stay those of the decision as far as possible: the agent tells of memory and compute what it took from there.
    """
    return {name: _correct_one(grants, actual.get(name, ())) for name, grants in decided.items()}


def _correct_one(decided: tuple[Grant, ...], actual: tuple[Grant, ...]) -> tuple[Grant, ...]:
    if not actual or {grant.uuid for grant in decided} == {grant.uuid for grant in actual}:
        return decided
    spare = decided[0]
    return tuple(
        Grant(grant.uuid, grant.memory_mib or spare.memory_mib, grant.cores or spare.cores, spare.units)
        for grant in actual
    )
