"""Which labels a Node should carry from us: `gpu.present`, `gpu.deploy.*`, and the facts that its agent found.

What somebody else wrote is theirs: a `gpu.deploy.*` with any value is an opt-out to honour (an empty one is as good as none).
Facts are ours wherever they come from. Called by `build`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from gpushare import names
from gpushare.api.clusterpolicy import ClusterPolicy
from gpushare.domain.gpunode import GPUNode
from gpushare.plan.snapshot import Node

CONTAINER: Final = "container"
WORKLOADS: Final = frozenset({CONTAINER, "vm-passthrough", "vm-vgpu"})

DEPLOYED: Final = (
    "driver", "gpu-feature-discovery", "container-toolkit", "device-plugin", "dcgm", "dcgm-exporter",
    "node-status-exporter", "operator-validator", "client",
)  # fmt: skip
"""Components of container workloads. Labelled whether or not the policy has them, since other operators select by these too."""
MIG_MANAGER: Final = "mig-manager"
_MIG_PRODUCTS: Final = ("h100", "a100", "a30")

# What a label may come from: an agent's report must not be able to move a node anywhere else in the cluster.
_FACT: Final = re.compile(
    re.escape(names.PREFIX) + r"(?:"
    r"gfd\.timestamp|vgpu\.(?:present|host-driver-version|host-driver-branch)"
    r"|cuda\.(?:driver|runtime)(?:-version)?\.(?:major|minor|rev|revision|full)"
    r"|mig\.(?:capable|strategy)|mps\.capable"
    r"|gpu\.(?:machine|mode|clique|family|compute\.(?:major|minor))"
    r"|(?:gpu|mig-[a-z0-9.-]+)\.(?:product|count|replicas|sharing-strategy|memory|multiprocessors"
    r"|slices\.(?:gi|ci)|engines\.(?:copy|decoder|encoder|jpeg|ofa))"
    r")"
)
_VALUE: Final = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLabels:
    """A change of one Node, for one server-side apply by our own field manager."""

    name: str
    uid: str
    """Goes into the patch: a Node that was replaced meanwhile answers with a conflict."""
    labels: Mapping[str, str]
    """Everything that is ours; what is missing here and was ours before goes."""
    removed: tuple[str, ...] = ()
    """Keys that go with it, for logs."""
    force: bool = False
    """A fact is written over somebody else's. Then `resource_version` must go into the patch, so that an opt-out that
    was written since the snapshot is a conflict and not lost."""
    resource_version: str = ""


def is_gpu_node(node: Node) -> bool:
    """Whether a node has NVIDIA GPUs: discovery says so, or somebody else than us wrote `gpu.present=true`."""
    return _is_discovered(node) or _foreign_presence(node) == "true"


def _is_discovered(node: Node) -> bool:
    return any(node.labels.get(label) == "true" for label in names.LABELS_NFD_GPU)


def _foreign_presence(node: Node) -> str:
    # What we wrote ourselves is no input: it would keep a node with GPUs for ever.
    return "" if names.LABEL_PRESENT in node.owned else node.labels.get(names.LABEL_PRESENT, "")


def workload_of(node: Node, policy: ClusterPolicy) -> str:
    """What the node's GPUs are for: `container` unless the policy enables virtual machines."""
    if not policy.is_enabled("sandbox_workloads"):
        return CONTAINER
    label = node.labels.get(names.LABEL_WORKLOAD_CONFIG, "")
    return label if label in WORKLOADS else policy.sandbox_workloads.default_workload or CONTAINER


def is_served(node: Node, policy: ClusterPolicy) -> bool:
    """Whether a node belongs to us: it has GPUs, they are for containers, and the agent is wanted in this cluster."""
    return policy.is_enabled("device_plugin") and is_gpu_node(node) and workload_of(node, policy) == CONTAINER


def runs_agent(node: Node, wanted: Mapping[str, str]) -> bool:
    """Whether the agent's DaemonSet selects the node, once its labels are as they should be."""
    label = names.LABEL_DEPLOY_DEVICE_PLUGIN
    return wanted.get(label, "" if label in node.owned else node.labels.get(label, "")) == "true"


def wanted_labels(node: Node, policy: ClusterPolicy | None, gpu_node: GPUNode | None) -> dict[str, str]:
    """All labels of one Node that should be ours. Without a policy there are none."""
    if policy is None:
        return {}
    if not is_gpu_node(node):
        # Said, rather than removed, as NVIDIA's operator does; never of a node that had none.
        return {names.LABEL_PRESENT: "false"} if names.LABEL_PRESENT in node.owned else {}
    presence = {} if _foreign_presence(node) == "true" else {names.LABEL_PRESENT: "true"}
    if workload_of(node, policy) != CONTAINER:
        return presence
    facts = _facts(node, policy, gpu_node)
    # The facts of this pass count at once, or a MIG-capable node would be written twice.
    return {**presence, **_deploy_labels(node, {**node.labels, **facts}), **facts}


def _facts(node: Node, policy: ClusterPolicy, gpu_node: GPUNode | None) -> dict[str, str]:
    if gpu_node is None or gpu_node.node_uid != node.uid:
        return {}
    told = gpu_node.status.labels
    opted_out = node.labels.get(f"{names.LABEL_DEPLOY_PREFIX}gpu-feature-discovery") == "false"
    if opted_out or not policy.is_enabled("gfd"):
        # Nobody wants to know them; but MPS daemons run by this one only, and without them there would be no GPUs.
        return {key: "true" for key in (names.LABEL_MPS_CAPABLE,) if told.get(key) == "true"}
    return {key: value for key, value in told.items() if _is_fact(key) and _is_value(value)}


def _deploy_labels(node: Node, known: Mapping[str, str]) -> dict[str, str]:
    if node.labels.get(names.LABEL_DEPLOY_OPERANDS) == "false":
        return {}
    components = (*DEPLOYED, MIG_MANAGER) if _is_mig_capable(known) else DEPLOYED
    keys = (names.LABEL_DEPLOY_PREFIX + component for component in components)
    return {key: "true" for key in keys if key in node.owned or not node.labels.get(key)}


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


def build_change(node: Node, wanted: Mapping[str, str]) -> NodeLabels | None:
    """What has to be written so that our labels are `wanted`; None when they are."""
    owned = {key: node.labels[key] for key in node.owned if key in node.labels}
    if owned == wanted:
        return None
    force = any(node.labels.get(key, value) != value and key not in node.owned for key, value in wanted.items())
    return NodeLabels(
        name=node.name,
        uid=node.uid,
        labels=dict(wanted),
        removed=tuple(sorted(owned.keys() - wanted.keys())),
        force=force,
        resource_version=node.resource_version if force else "",
    )
