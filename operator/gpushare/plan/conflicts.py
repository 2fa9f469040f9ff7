"""Others who do what we do: found, told in the policy's `Conflict`, and never fought. Called by `build`.

Some stand in the way of everything: then nothing is written until they are gone. Some only of a label or a node: that is left
to them, and everything else goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gpushare import names
from gpushare.domain.gpunode import ANOTHER_PLUGIN, CAPACITY_SHOWN, REGISTERED, GPUNode
from gpushare.domain.manifests import ObjectKey
from gpushare.plan import components, policies, pruning, wording
from gpushare.plan.snapshot import Node, Policy, Snapshot


def find_blocking(snapshot: Snapshot, active: Policy) -> list[str]:
    """Why nothing may be written; empty where nobody stands in the way."""
    return [
        *_gpu_clusters(snapshot),
        *_nvidia_operators(snapshot, active),
        *_controlled_objects(snapshot, active),
    ]


def awaits_another(snapshot: Snapshot) -> bool:
    """Whether nothing is written until another operator is gone, which people may have just told it to be."""
    active = policies.choose(snapshot).active
    is_shared = active is not None and is_followed_by_another(snapshot, active)
    return bool(snapshot.gpu_clusters) or snapshot.settings.namespace in snapshot.nvidia_operators or is_shared


def is_followed_by_another(snapshot: Snapshot, active: Policy) -> bool:
    """Whether NVIDIA's operator writes the status of the policy, so that a second one would only contradict it."""
    return active.namespace in snapshot.nvidia_operators and active.namespace != snapshot.settings.namespace


def _gpu_clusters(snapshot: Snapshot) -> Iterator[str]:
    for name in sorted(snapshot.gpu_clusters):
        yield (
            f"GPUCluster {name} exists, and with it another operator that shares GPUs; nothing is changed until it is deleted"
        )


def _nvidia_operators(snapshot: Snapshot, active: Policy) -> Iterator[str]:
    own = snapshot.settings.namespace
    if own in snapshot.nvidia_operators:
        yield (
            f"NVIDIA's operator is at work in namespace {own} too, where it rewrites or deletes objects of the same names; "
            "nothing is changed. To replace it, scale it down; to have both, install this one into another namespace, "
            "with a policy of its own"
        )
    elif is_followed_by_another(snapshot, active):
        yield (
            f"NVIDIA's operator in namespace {active.namespace} follows this policy too; nothing is changed. Create a second "
            "policy, which it ignores, and name it by --policy (chart value policy)"
        )


def _controlled_objects(snapshot: Snapshot, active: Policy) -> Iterator[str]:
    keys = components.all_keys(snapshot.settings.namespace)
    for item in pruning.find_foreign(snapshot.objects, keys=keys, owner_uid=active.uid):
        yield (
            f"{item.key} is controlled by {item.controller_name}; nothing is changed until that is gone, "
            "or has devicePlugin.enabled: false"
        )


def find_others(snapshot: Snapshot, contested: Mapping[str, frozenset[str]]) -> list[str]:
    """What is left to others while everything else goes on.

    Args:
        snapshot: the cluster.
        contested: labels that were left to others, by node.
    """
    maintained = {node.name: node.maintained for node in snapshot.nodes if node.name in contested}
    of_discovery = {name: keys & maintained[name] for name, keys in contested.items() if keys & maintained[name]}
    of_others = {name: keys - maintained[name] for name, keys in contested.items() if keys - maintained[name]}
    return [
        *_objects(snapshot.lost_objects, snapshot.settings.namespace),
        *_discovery(of_discovery),
        *_others(of_others, snapshot.nodes),
        *_plugins(snapshot.gpu_nodes),
        *_registrars(snapshot),
    ]


def _objects(lost: Iterable[ObjectKey], namespace: str) -> Iterator[str]:
    for key in sorted(map(str, lost)):
        yield (
            f"somebody else rewrites or deletes {key} again and again: its component is left alone for an hour, or until the "
            f"controller is restarted (`kubectl rollout restart -n {namespace} deployment {names.CONTROLLER}`). "
            "`kubectl get -o yaml --show-managed-fields` tells who wrote it last"
        )


def _discovery(left: Mapping[str, frozenset[str]]) -> Iterator[str]:
    if left:
        yield (
            f"node feature discovery writes {_keys(left)} on {wording.listed(left)}, as NVIDIA's gpu-feature-discovery tells it: "
            "those labels stay as they are. Delete that DaemonSet, or set gfd.enabled: false in this policy"
        )


def _others(left: Mapping[str, frozenset[str]], nodes: Iterable[Node]) -> Iterator[str]:
    if left:
        writers = {node.writers[key] for node in nodes for key in left.get(node.name, ()) if key in node.writers}
        who = wording.listed(writers) if writers else "somebody else"
        yield f"{who} changes {_keys(left)} on {wording.listed(left)} again and again: that is left alone for an hour"


def _keys(left: Mapping[str, frozenset[str]]) -> str:
    return wording.listed(frozenset[str]().union(*left.values()))


def _plugins(gpu_nodes: Iterable[GPUNode]) -> Iterator[str]:
    found = {
        gpu_node.name
        for gpu_node in gpu_nodes
        for condition in gpu_node.status.conditions
        if (condition.type, condition.reason) == (REGISTERED, ANOTHER_PLUGIN)
    }
    if found:
        yield (
            f"another device plugin serves the same resources on {wording.listed(found)}, and the agent stands by there: "
            "remove it (kubectl get pods -A -o wide shows what runs on a node)"
        )


def _registrars(snapshot: Snapshot) -> Iterator[str]:
    """Device plugins that have registered a resource of ours from a socket of their own: the kubelet then believes the last."""
    gpu_nodes = {gpu_node.name: gpu_node for gpu_node in snapshot.gpu_nodes}
    found = {
        node.name for node in snapshot.nodes if node.name in gpu_nodes and _is_registered(node, gpu_nodes[node.name])
    }
    if found:
        yield (
            f"on {wording.listed(found)} the kubelet shows other numbers than the agent offers, so another device plugin has "
            "registered the same resources, it seems: remove it (kubectl get pods -A -o wide shows what runs on a node)"
        )


def _is_registered(node: Node, gpu_node: GPUNode) -> bool:
    # A difference that lasts; nothing at all would be a kubelet that has lost us.
    lasts = any(condition.type == CAPACITY_SHOWN for condition in gpu_node.status.conditions)
    offered = {resource.name: resource.total for resource in gpu_node.status.resources}
    return lasts and any(node.resources.get(name, (0, 0))[0] not in {0, total} for name, total in offered.items())
