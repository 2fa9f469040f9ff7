"""Which labels a Node should carry from us: `gpu.present`, `gpu.deploy.*`, and the facts that its agent found.

What somebody else wrote is theirs: a `gpu.deploy.*` with any value is an opt-out to honour (an empty one is as good as none).
Facts are ours wherever they come from, unless somebody keeps writing them. Called by `fleet`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from gpushare import names
from gpushare.api.clusterpolicy import ClusterPolicy
from gpushare.domain.gpunode import GPUNode
from gpushare.plan import discovery, optouts
from gpushare.plan.discovery import Sight
from gpushare.plan.snapshot import Node

CONTAINER: Final = "container"
_PASSTHROUGH: Final = "vm-passthrough"
_VGPU: Final = "vm-vgpu"
WORKLOADS: Final = frozenset({CONTAINER, _PASSTHROUGH, _VGPU})

DEPLOYED: Final = (
    "driver", "gpu-feature-discovery", "container-toolkit", "device-plugin", "dcgm", "dcgm-exporter",
    "node-status-exporter", "operator-validator", "client",
)  # fmt: skip
"""Components of container workloads. Labelled whether or not the policy has them, since other operators select by these too."""
MIG_MANAGER: Final = "mig-manager"
_MIG_PRODUCTS: Final = ("h100", "a100", "a30")
_MIG_CHANGES: Final = frozenset({"pending", "rebooting"})
"""States of a MIG manager that is at work: what an agent sees meanwhile is not what will be."""
_OFF: Final = "false"

# What a label may come from: an agent's report must not be able to move a node anywhere else in the cluster.
_FACT: Final = re.compile(
    re.escape(names.PREFIX) + r"(?:"
    r"gfd\.timestamp|vgpu\.(?:present|host-driver-version|host-driver-branch)"
    r"|cuda\.(?:driver|runtime)(?:-version)?\.(?:major|minor|rev|revision|full)"
    r"|mig\.(?:capable|strategy)|mps\.capable"
    r"|gpu\.(?:machine|mode|clique|family|fractions|isolation|compute\.(?:major|minor))"
    r"|(?:gpu|mig-[a-z0-9.-]+)\.(?:product|count|replicas|sharing-strategy|memory|multiprocessors"
    r"|slices\.(?:gi|ci)|engines\.(?:copy|decoder|encoder|jpeg|ofa))"
    r")"
)
_VALUE: Final = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What should stand on one Node from us."""

    labels: Mapping[str, str]
    opted_out: frozenset[str] = frozenset()
    """Components to remember as opted out."""
    is_blinking: bool = False
    """Without the labels of discovery: who takes labels from the node now does so for that, and once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLabels:
    """A change of one Node, for one server-side apply by our own field manager."""

    name: str
    uid: str
    """Goes into the patch: a Node that was replaced meanwhile answers with a conflict."""
    labels: Mapping[str, str]
    """Everything that is ours; what is missing here and was ours before goes."""
    opted_out: frozenset[str] = frozenset()
    """What the annotation says, which goes where this is empty."""
    removed: tuple[str, ...] = ()
    """Keys that go with it, for logs."""
    claimed: tuple[str, ...] = ()
    """Keys that are not ours yet, or no longer."""
    is_known: bool = False
    """Something on the Node is ours already, and nothing explains why not all: what is claimed was taken from us."""
    force: bool = False
    """A fact is written over somebody else's. Then `resource_version` must go into the patch, so that an opt-out that
    was written since the snapshot is a conflict and not lost."""
    resource_version: str = ""


def workload_of(node: Node, policy: ClusterPolicy) -> str:
    """What the node's GPUs are for: `container` unless the policy enables virtual machines."""
    if not policy.is_enabled("sandbox_workloads"):
        return CONTAINER
    label = node.labels.get(names.LABEL_WORKLOAD_CONFIG, "")
    return label if label in WORKLOADS else policy.sandbox_workloads.default_workload or CONTAINER


def is_served(node: Node, policy: ClusterPolicy, sight: Sight) -> bool:
    """Whether a node belongs to us: it has GPUs for containers, nobody has opted it out, and agents are wanted."""
    is_ours = policy.is_enabled("device_plugin") and not _is_off(node, "operands")
    return is_ours and sight.present and workload_of(node, policy) == CONTAINER


def runs_agent(node: Node, wanted: Mapping[str, str]) -> bool:
    """Whether the agent's DaemonSet selects the node, once its labels are as they should be."""
    label = names.LABEL_DEPLOY_DEVICE_PLUGIN
    return wanted.get(label, "" if label in node.owned else node.labels.get(label, "")) == "true"


def build_wanted(node: Node, policy: ClusterPolicy, gpu_node: GPUNode | None, sight: Sight) -> Wanted:
    """All that should stand on one Node from us."""
    if not sight.present:
        # The label becomes "false" rather than vanish, as with NVIDIA's operator; where we had not set it, it is not set now.
        presence = {names.LABEL_PRESENT: "false"} if names.LABEL_PRESENT in node.owned else {}
        return Wanted(labels=presence, opted_out=optouts.remembered(node, sight, DEPLOYED))
    # In a time without discovery's labels, what NVIDIA's operator has made of it is not overruled.
    foreign = discovery.foreign_presence(node)
    presence = {} if foreign == "true" or (sight.missing and foreign) else {names.LABEL_PRESENT: "true"}
    facts = _facts(node, policy, gpu_node) if workload_of(node, policy) == CONTAINER else {}
    # The facts of this pass count at once, or a MIG-capable node would be written twice.
    known = {**node.labels, **facts}
    components = tuple(_components(node, policy, known))
    opted_out = optouts.remembered(node, sight, components)
    deployed = _deploy_labels(node, components, opted_out)
    labels = {**presence, **deployed, **_mig_config(node, policy, known), **facts}
    return Wanted(labels=labels, opted_out=opted_out, is_blinking=sight.missing)


def _facts(node: Node, policy: ClusterPolicy, gpu_node: GPUNode | None) -> dict[str, str]:
    if gpu_node is None or gpu_node.node_uid != node.uid or _is_off(node, "operands") or _is_off(node, "device-plugin"):
        return {}  # nobody is there who would know, or whose word would still hold
    if node.labels.get(names.LABEL_MIG_STATE) in _MIG_CHANGES:
        return {key: node.labels[key] for key in node.owned if key in node.labels and _is_fact(key)}
    told = gpu_node.status.labels
    if _is_off(node, "gpu-feature-discovery") or not policy.is_enabled("gfd"):
        # No labels are wanted; but MPS daemons run only where this one is, and without them no share would be offered.
        return {key: "true" for key in (names.LABEL_MPS_CAPABLE,) if told.get(key) == "true"}
    return {key: value for key, value in told.items() if _is_fact(key) and _is_value(value)}


def _is_off(node: Node, component: str) -> bool:
    return node.labels.get(names.LABEL_DEPLOY_PREFIX + component) == _OFF


def _components(node: Node, policy: ClusterPolicy, known: Mapping[str, str]) -> Iterable[str]:
    """What NVIDIA's operator labels for the node's workload."""
    workload = workload_of(node, policy)
    if workload == CONTAINER:
        return (*DEPLOYED, MIG_MANAGER) if _is_mig_capable(known) else DEPLOYED
    if workload == _VGPU:
        return (
            "sandbox-device-plugin",
            "vgpu-manager",
            "vgpu-device-manager",
            "sandbox-validator",
            "cc-manager",
            "client",
        )
    plugin = "kata-sandbox-device-plugin" if policy.sandbox_workloads.mode == "kata" else "sandbox-device-plugin"
    return plugin, "sandbox-validator", "vfio-manager", "kata-manager", "cc-manager", "client"


def _deploy_labels(node: Node, components: Iterable[str], opted_out: frozenset[str]) -> dict[str, str]:
    if _is_off(node, "operands"):
        # Left behind by an operator that is gone, it would keep our agent where nobody wants it.
        is_left = node.labels.get(names.LABEL_DEPLOY_DEVICE_PLUGIN, "") not in {"", _OFF}
        is_ours = names.LABEL_DEPLOY_DEVICE_PLUGIN in node.owned
        return {names.LABEL_DEPLOY_DEVICE_PLUGIN: _OFF} if is_left and not is_ours else {}
    labels: dict[str, str] = {}
    for component in components:
        key = names.LABEL_DEPLOY_PREFIX + component
        if component not in opted_out:
            if key in node.owned or not node.labels.get(key):
                labels[key] = "true"
        elif key in node.owned or node.labels.get(key) != _OFF:
            labels[key] = _OFF
    return labels


def _mig_config(node: Node, policy: ClusterPolicy, known: Mapping[str, str]) -> dict[str, str]:
    """What a MIG manager is told to begin with, as the policy wants it; never over what somebody has told it."""
    default = policy.mig_manager.config.default if policy.mig_manager.config is not None else ""
    is_wanted = policy.is_enabled("mig_manager") and default and _is_mig_capable(known)
    is_free = names.LABEL_MIG_CONFIG in node.owned or names.LABEL_MIG_CONFIG not in node.labels
    is_for_containers = workload_of(node, policy) == CONTAINER
    return {names.LABEL_MIG_CONFIG: default} if is_wanted and is_free and is_for_containers else {}


def _is_mig_capable(labels: Mapping[str, str]) -> bool:
    if f"{names.PREFIX}vgpu.host-driver-version" in labels:  # a guest, whose GPU is a part already
        return False
    if (capable := labels.get(names.LABEL_MIG_CAPABLE)) is not None:
        return capable == "true"
    return any(word in labels.get(names.LABEL_PRODUCT, "").lower() for word in _MIG_PRODUCTS)


@lru_cache(maxsize=1024)
def _is_fact(key: str) -> bool:
    return _FACT.fullmatch(key) is not None


@lru_cache(maxsize=4096)
def _is_value(value: str) -> bool:
    # One bad value would make the API server refuse the good ones with it.
    return _VALUE.fullmatch(value) is not None


def contested(node: Node, wanted: Mapping[str, str], lost: frozenset[str]) -> frozenset[str]:
    """Facts that somebody else keeps writing, so that they are left alone.

    Args:
        node: with what node feature discovery says to maintain itself, as it does where NVIDIA's own feature discovery runs.
        wanted: our labels.
        lost: keys that were written again and again before.
    """
    return frozenset(key for key in wanted if key not in node.owned and (key in node.maintained or key in lost))


def build_change(node: Node, wanted: Wanted, left: frozenset[str] = frozenset()) -> NodeLabels | None:
    """What has to be written so that what is ours on a Node is as `wanted`; None when it is.

    Args:
        node: as it is.
        wanted: as it should be.
        left: keys that are left alone.
    """
    owned = {key: node.labels[key] for key in node.owned if key in node.labels}
    labels = {key: value for key, value in wanted.labels.items() if key not in left}
    if owned == labels and node.opted_out == wanted.opted_out:
        return None
    claimed = tuple(sorted(key for key in labels if key not in node.owned))
    force = any(node.labels.get(key, labels[key]) != labels[key] for key in claimed)
    return NodeLabels(
        name=node.name,
        uid=node.uid,
        labels=labels,
        opted_out=wanted.opted_out,
        removed=tuple(sorted(owned.keys() - labels.keys())),
        claimed=claimed,
        is_known=bool(owned) and not wanted.is_blinking,
        force=force,
        resource_version=node.resource_version if force else "",
    )
