"""On which nodes a DaemonSet has a pod, and what that pod looks like. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.sandbox.scheduling import affinity, taints
from gpushare.sandbox.workloads import templates

LABEL_HASH = "controller-revision-hash"
LABEL_GENERATION = "pod-template-generation"
ANNOTATION_GENERATION = "deprecated.daemonset.template.generation"

_STAYS = (taints.NOT_READY, taints.UNREACHABLE)
_COMES = (taints.DISK_PRESSURE, taints.MEMORY_PRESSURE, taints.PID_PRESSURE, taints.UNSCHEDULABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """How a DaemonSet stands to a node."""

    should_run: bool
    should_continue: bool
    """A pod that is there already may stay: false only where the node does not match, or a NoExecute taint drives it out."""


def build_placement(daemon_set: Manifest, node: Manifest) -> Placement:
    """Selectors and taints decide; whether there is room is the scheduler's business."""
    spec = daemon_set["spec"]["template"]["spec"]
    if not affinity.is_wanted(spec, node):
        return Placement(should_run=False, should_continue=False)
    tolerations = build_tolerations(spec)
    driven_out = taints.untolerated(node, tolerations, (taints.NO_EXECUTE,))
    kept_away = taints.untolerated(node, tolerations, (taints.NO_SCHEDULE,))
    return Placement(should_run=not driven_out and not kept_away, should_continue=not driven_out)


def build_tolerations(spec: Manifest) -> list[dict[str, Any]]:
    """The template's tolerations and those that every pod of a DaemonSet gets."""
    automatic = [(key, taints.NO_EXECUTE) for key in _STAYS] + [(key, taints.NO_SCHEDULE) for key in _COMES]
    if spec.get("hostNetwork"):
        automatic.append((taints.NETWORK_UNAVAILABLE, taints.NO_SCHEDULE))
    tolerations = [dict(toleration) for toleration in spec.get("tolerations") or []]
    for key, effect in automatic:
        added = {"key": key, "operator": "Exists", "effect": effect}
        if added not in tolerations:
            tolerations.append(added)
    return tolerations


def build_pod(daemon_set: Manifest, node: str, revision_hash: str) -> Manifest:
    """A pod pinned to its node by affinity, so that the scheduler binds it and counts what it asks for."""
    labels = {LABEL_HASH: revision_hash}
    generation = (daemon_set["metadata"].get("annotations") or {}).get(ANNOTATION_GENERATION)
    if generation:
        labels[LABEL_GENERATION] = generation
    pod = templates.build_pod(daemon_set, manifests.DAEMON_SET, daemon_set["spec"]["template"], labels)
    spec = pod["spec"]
    spec["tolerations"] = build_tolerations(spec)
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    node_affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    node_affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [term]}
    return pod
