"""While the active policy cannot be followed: what was decided stays, and facts go on being facts. Called by `build`."""

from __future__ import annotations

from typing import Final

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.conditions import Condition, with_times
from gpushare.domain.gpunode import CAPACITY_SHOWN, CONFIG_ASSIGNED, DISCOVERED, GPUNode
from gpushare.domain.manifests import ObjectKey
from gpushare.plan import agents, nodes
from gpushare.plan.fleet import GPUNodeConditions
from gpushare.plan.snapshot import AgentPod, LiveObject, Node, Snapshot

_KEPT: Final = frozenset({CONFIG_ASSIGNED, DISCOVERED, CAPACITY_SHOWN})
"""Conditions of ours that stay as they are. They go along, since what is left out of an application is taken back."""


def build_conditions(snapshot: Snapshot, now: str) -> tuple[GPUNodeConditions, ...]:
    """Whether the agent of each node that has a GPUNode is at work, where that is not stored already."""
    live = _daemonset(snapshot)
    # Pods of the same name that somebody else made are no agents.
    pods = agents.pods_by_node(snapshot.agent_pods) if live is None or live.managed else {}
    found = {node.name: node for node in snapshot.nodes}
    told = []
    for gpu_node in sorted(snapshot.gpu_nodes, key=lambda each: each.name):
        node, before = found.get(gpu_node.name), gpu_node.status.conditions
        if node is None or node.uid != gpu_node.node_uid:
            continue
        fact = _agent_ready(node, gpu_node, pods.get(node.name), snapshot.settings.namespace)
        [timed] = with_times([fact], before, now)
        if timed not in before:
            kept = (condition for condition in before if condition.type in _KEPT)
            told.append(GPUNodeConditions(name=node.name, conditions=(timed, *kept)))
    return tuple(told)


def _agent_ready(node: Node, gpu_node: GPUNode, pod: AgentPod | None, namespace: str) -> Condition:
    is_meant = nodes.runs_agent(node, node.labels)
    return agents.condition_of(node, agents.agent_of(node, pod, gpu_node, namespace) if is_meant else None)


def describe_loss(snapshot: Snapshot) -> list[str]:
    """That nodes have lost their agents with an earlier policy, which owned them; empty where they have not."""
    if not snapshot.gpu_nodes or _daemonset(snapshot) is not None:
        return []
    return [f"{_key(snapshot)} is gone, and no agent runs until this policy can be followed"]


def _daemonset(snapshot: Snapshot) -> LiveObject | None:
    return next((item for item in snapshot.objects if item.key == _key(snapshot)), None)


def _key(snapshot: Snapshot) -> ObjectKey:
    return ObjectKey(manifests.DAEMON_SET, names.DAEMONSET_DEVICE_PLUGIN, snapshot.settings.namespace)
