"""All nodes of one pass: what each gets, how far it is, and what has to be written for it. Called by `build`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpushare.api.clusterpolicy import ClusterPolicy
from gpushare.domain.conditions import Condition, with_times
from gpushare.domain.gpunode import CONFIG_ASSIGNED, Config, GPUNode
from gpushare.plan import assignments, nodes, rollouts
from gpushare.plan.assignments import Assignment
from gpushare.plan.catalogs import Catalog
from gpushare.plan.nodes import NodeLabels
from gpushare.plan.rollouts import Progress
from gpushare.plan.snapshot import AgentPod, Node, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class GPUNodeSpec:
    """A configuration to give to a node: `gpunode.assignment_manifest` of it, applied by force."""

    name: str
    node_uid: str
    config: Config


@dataclass(frozen=True, slots=True, kw_only=True)
class GPUNodeCondition:
    """A condition to set on a GPUNode: `gpunode.condition_manifest` of it, applied to the status after the spec."""

    name: str
    condition: Condition


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
    condition: GPUNodeCondition | None
    """None: stored already."""


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


def build_fleet(snapshot: Snapshot, policy: ClusterPolicy, catalog: Catalog, now: str) -> Fleet:
    """Decides for every node."""
    gpu_nodes = {gpu_node.name: gpu_node for gpu_node in snapshot.gpu_nodes}
    # A node has two pods of the agent while one replaces the other; one that is ready is enough.
    pods: dict[str, AgentPod] = {}
    for pod in sorted(snapshot.agent_pods, key=lambda pod: (pod.ready, pod.name)):
        pods[pod.node] = pod
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
            expects = nodes.runs_agent(node, wanted)
            members.append(_member(node, stored, catalog, pods.get(node.name), now, expects=expects))
        # Else the Node was replaced under its name: the old GPUNode goes first, the next pass makes a new one.
    return Fleet(
        members=tuple(members),
        labels=tuple(labels),
        removals=_removals(snapshot, keep=served),
        gpu_nodes=sum(map(nodes.is_gpu_node, snapshot.nodes)),
        assigned={member.node.name: member.assignment for member in members},
        expected={member.node.name: member.progress for member in members if member.progress is not None},
    )


def _member(
    node: Node, stored: GPUNode | None, catalog: Catalog, pod: AgentPod | None, now: str, *, expects: bool
) -> Member:
    assignment = assignments.assign(catalog, node, stored)
    return Member(
        node=node,
        assignment=assignment,
        progress=rollouts.progress_of(assignment.config, stored, pod, kept=assignment.refusal is not None)
        if expects
        else None,
        spec=None
        if stored is not None and stored.config == assignment.config
        else GPUNodeSpec(name=node.name, node_uid=node.uid, config=assignment.config),
        condition=_condition(node.name, assignment, stored, now),
    )


def _condition(name: str, assignment: Assignment, stored: GPUNode | None, now: str) -> GPUNodeCondition | None:
    before = [c for c in stored.status.conditions if c.type == CONFIG_ASSIGNED] if stored is not None else []
    [wanted] = with_times([assignments.condition_of(name, assignment)], before, now)
    return None if before == [wanted] else GPUNodeCondition(name=name, condition=wanted)


def build_removal(snapshot: Snapshot) -> Fleet:
    """No policy: nothing of ours stays on any node."""
    changes = (nodes.build_change(node, {}) for node in sorted(snapshot.nodes, key=lambda node: node.name))
    return Fleet(
        labels=tuple(change for change in changes if change is not None), removals=_removals(snapshot, keep=set())
    )


def _removals(snapshot: Snapshot, *, keep: set[str]) -> tuple[GPUNodeRemoval, ...]:
    gone = [gpu_node for gpu_node in snapshot.gpu_nodes if gpu_node.name not in keep]
    return tuple(GPUNodeRemoval(name=g.name, uid=g.uid) for g in sorted(gone, key=lambda g: g.name))
