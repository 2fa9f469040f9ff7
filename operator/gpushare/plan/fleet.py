"""All nodes of one pass: what each gets, how far it is, and what has to be written for it. Called by `build`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from gpushare import names
from gpushare.api.clusterpolicy import ClusterPolicy
from gpushare.domain.conditions import Condition, with_times
from gpushare.domain.gpunode import DEVICES_READY, Config, GPUNode
from gpushare.plan import agents, assignments, catalogs, nodes, rollouts
from gpushare.plan.agents import Agent
from gpushare.plan.assignments import Assignment
from gpushare.plan.catalogs import Catalog
from gpushare.plan.nodes import NodeLabels
from gpushare.plan.rollouts import Progress
from gpushare.plan.snapshot import Node, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class GPUNodeSpec:
    """A configuration to give to a node: `gpunode.assignment_manifest` of it, applied by force."""

    name: str
    node_uid: str
    config: Config


@dataclass(frozen=True, slots=True, kw_only=True)
class GPUNodeConditions:
    """Our conditions on a GPUNode: `gpunode.conditions_manifest` of them, applied to the status after the spec."""

    name: str
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GPUNodeRemoval:
    """A GPUNode to delete, if it still has that uid."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One node that the agent serves, or would serve."""

    node: Node
    assignment: Assignment
    progress: Progress | None
    """None: its agent was opted out, so nothing is waited for."""
    spec: GPUNodeSpec | None
    """None: stored already."""
    conditions: GPUNodeConditions | None
    """None: stored already."""
    known: bool
    """Nothing of the assignment is new, whatever has become of the agent."""
    devices: Condition | None
    """What the agent says of its GPUs; None: nothing yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """What one pass makes of all nodes."""

    members: tuple[Member, ...] = ()
    """By name."""
    labels: tuple[NodeLabels, ...] = ()
    removals: tuple[GPUNodeRemoval, ...] = ()
    gpu_nodes: int = 0
    """Nodes with GPUs, whatever they are for."""
    assigned: Mapping[str, Assignment] = field(default_factory=dict)
    expected: Mapping[str, Progress] = field(default_factory=dict)
    """Nodes that run an agent, or are about to."""
    uses_mps: bool = False
    """Whether a node has a configuration that shares by MPS, or still runs one."""


def build_fleet(snapshot: Snapshot, policy: ClusterPolicy, catalog: Catalog, now: str) -> Fleet:
    """Decides for every node."""
    gpu_nodes = {gpu_node.name: gpu_node for gpu_node in snapshot.gpu_nodes}
    pods = agents.pods_by_node(snapshot.agent_pods)
    members: list[Member] = []
    labels: list[NodeLabels] = []
    served: set[str] = set()
    for node in sorted(snapshot.nodes, key=lambda node: node.name):
        stored = gpu_nodes.get(node.name)
        wanted = nodes.wanted_labels(node, policy, stored)
        if (change := nodes.build_change(node, wanted)) is not None:
            labels.append(change)
        if not nodes.is_served(node, policy):
            continue
        if stored is None or stored.node_uid == node.uid:
            served.add(node.name)
            agent = (
                agents.agent_of(node, pods.get(node.name), stored, snapshot.settings.namespace)
                if nodes.runs_agent(node, wanted)
                else None
            )
            members.append(_member(node, stored, catalog, agent, now))
        # Else the Node was replaced under its name: the old GPUNode goes first, the next pass makes a new one.
    return Fleet(
        members=tuple(members),
        labels=tuple(labels),
        removals=_removals(snapshot, keep=served),
        gpu_nodes=sum(map(nodes.is_gpu_node, snapshot.nodes)),
        assigned={member.node.name: member.assignment for member in members},
        expected={member.node.name: member.progress for member in members if member.progress is not None},
        uses_mps=_uses_mps(members, gpu_nodes),
    )


def _uses_mps(members: Collection[Member], gpu_nodes: Mapping[str, GPUNode]) -> bool:
    if any(map(catalogs.shares_by_mps, {member.assignment.config for member in members})):
        return True
    # Until the agent has left it: it may hold back a configuration, or keep what it had.
    return any(
        gpu_nodes[member.node.name].status.labels.get(names.LABEL_MPS_CAPABLE) == "true"
        for member in members
        if member.node.name in gpu_nodes
    )


def _member(node: Node, stored: GPUNode | None, catalog: Catalog, agent: Agent | None, now: str) -> Member:
    assignment = assignments.assign(catalog, node, stored)
    config = assignment.config
    has_config = stored is not None and stored.config == config
    before = stored.status.conditions if stored is not None else ()
    told, about_agent = with_times(
        (assignments.condition_of(node.name, assignment), agents.condition_of(node, agent)), before, now
    )
    return Member(
        node=node,
        assignment=assignment,
        progress=rollouts.progress_of(config, stored, agent, kept=assignment.refusal is not None) if agent else None,
        spec=None if has_config else GPUNodeSpec(name=node.name, node_uid=node.uid, config=config),
        # Always both: what is left out of an application is taken back.
        conditions=None
        if told in before and about_agent in before
        else GPUNodeConditions(name=node.name, conditions=(told, about_agent)),
        known=has_config and told in before,
        devices=next((condition for condition in before if condition.type == DEVICES_READY), None),
    )


def build_removal(snapshot: Snapshot) -> Fleet:
    """No policy: nothing of ours stays on any node."""
    changes = (nodes.build_change(node, {}) for node in sorted(snapshot.nodes, key=lambda node: node.name))
    return Fleet(
        labels=tuple(change for change in changes if change is not None), removals=_removals(snapshot, keep=set())
    )


def _removals(snapshot: Snapshot, *, keep: set[str]) -> tuple[GPUNodeRemoval, ...]:
    gone = [gpu_node for gpu_node in snapshot.gpu_nodes if gpu_node.name not in keep]
    return tuple(GPUNodeRemoval(name=g.name, uid=g.uid) for g in sorted(gone, key=lambda g: g.name))
