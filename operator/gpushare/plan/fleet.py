"""All nodes of one pass: what each gets, how far it is, and what has to be written for it. Called by `build`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from gpushare import names
from gpushare.api.clusterpolicy import ClusterPolicy
from gpushare.domain.conditions import Condition, with_times
from gpushare.domain.gpunode import CAPACITY_SHOWN, DEVICES_READY, DISCOVERED, Config, GPUNode
from gpushare.plan import agents, assignments, braking, capacity, catalogs, discovery, nodes, rollouts
from gpushare.plan.agents import Agent
from gpushare.plan.assignments import Assignment
from gpushare.plan.braking import Candidate
from gpushare.plan.capacity import Showing
from gpushare.plan.catalogs import Catalog
from gpushare.plan.discovery import Sight
from gpushare.plan.nodes import NodeLabels, Wanted
from gpushare.plan.rollouts import Phase, Progress
from gpushare.plan.snapshot import AgentPod, Node, Snapshot


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
    showing: Showing
    """Whether the Node shows what the agent offers."""


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
    """What is named for each node, whether or not the brake lets it have that yet."""
    expected: Mapping[str, Progress] = field(default_factory=dict)
    """Nodes that run an agent, or are about to."""
    contested: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Labels that are left to somebody else who keeps writing them, by node."""
    unshown: Mapping[str, str] = field(default_factory=dict)
    """Nodes that do not show what their agents offer: since when, by name."""
    wake_seconds: float | None = None
    """Until the next node has been without discovery's labels, or without its shares, for too long; None: no node is without."""
    uses_mps: bool = False
    """Whether a node has a configuration that shares by MPS, or still runs one."""
    uses_fractions: bool = False
    """The same of one that gives out fractions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """One node as it is, and what should stand on it."""

    node: Node
    stored: GPUNode | None
    sight: Sight
    wanted: Wanted
    contested: frozenset[str]
    change: NodeLabels | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arrival:
    """One node on its way to what is named for it, before the brake."""

    seen: _Seen
    agent: Agent | None
    assignment: Assignment
    showing: Showing
    progress: Progress | None

    @property
    def candidate(self) -> Candidate:
        stored = self.seen.stored
        return Candidate(
            name=self.seen.node.name,
            canary=self.seen.node.canary,
            wanted=self.assignment.config,
            stored=stored.config if stored is not None else None,
            progress=self.progress,
        )


def build_fleet(snapshot: Snapshot, policy: ClusterPolicy, catalog: Catalog, now: str) -> Fleet:
    """Decides for every node."""
    gpu_nodes = {gpu_node.name: gpu_node for gpu_node in snapshot.gpu_nodes}
    pods = agents.pods_by_node(snapshot.agent_pods)
    seen = [
        _see(snapshot, node, gpu_nodes.get(node.name), policy, now)
        for node in sorted(snapshot.nodes, key=lambda node: node.name)
    ]
    # Where a Node was replaced under its name the old GPUNode goes first, and the next pass makes a new one.
    served = [
        each
        for each in seen
        if nodes.is_served(each.node, policy, each.sight)
        and (each.stored is None or each.stored.node_uid == each.node.uid)
    ]
    arrivals = [_arrive(each, catalog, _agent_of(snapshot, each, pods), snapshot.unshown, now) for each in served]
    held = braking.hold([each.candidate for each in arrivals], snapshot.settings)
    members = tuple(_member(each, held.get(each.seen.node.name, ""), now) for each in arrivals)
    return Fleet(
        members=members,
        labels=tuple(each.change for each in seen if each.change is not None),
        removals=_removals(snapshot, keep={each.node.name for each in served}),
        gpu_nodes=sum(each.sight.present for each in seen),
        assigned={each.seen.node.name: each.assignment for each in arrivals},
        expected={member.node.name: member.progress for member in members if member.progress is not None},
        contested={each.node.name: each.contested for each in seen if each.contested},
        unshown={member.node.name: member.showing.since for member in members if member.showing.since},
        wake_seconds=min(
            (
                *(each.sight.remaining_seconds for each in seen if each.sight.missing),
                *(each.showing.remaining_seconds for each in arrivals if each.showing.remaining_seconds),
            ),
            default=None,
        ),
        uses_mps=_uses_mps(members, gpu_nodes),
        uses_fractions=_uses_fractions(members, gpu_nodes),
    )


def _see(snapshot: Snapshot, node: Node, stored: GPUNode | None, policy: ClusterPolicy, now: str) -> _Seen:
    sight = discovery.look(node, stored, now, snapshot.settings.discovery_grace_seconds)
    wanted = nodes.build_wanted(node, policy, stored, sight)
    contested = nodes.contested(node, wanted.labels, snapshot.lost_labels.get(node.uid, frozenset()))
    change = nodes.build_change(node, wanted, contested)
    return _Seen(node=node, stored=stored, sight=sight, wanted=wanted, contested=contested, change=change)


def _agent_of(snapshot: Snapshot, seen: _Seen, pods: Mapping[str, AgentPod]) -> Agent | None:
    if not nodes.runs_agent(seen.node, seen.wanted.labels):
        return None
    return agents.agent_of(seen.node, pods.get(seen.node.name), seen.stored, snapshot.settings.namespace)


def _uses_mps(members: Collection[Member], gpu_nodes: Mapping[str, GPUNode]) -> bool:
    if any(map(catalogs.shares_by_mps, {member.assignment.config for member in members})):
        return True
    # Also as long as an agent serves by MPS: it may hold back a configuration, or keep what it had.
    return any(
        gpu_nodes[member.node.name].status.labels.get(names.LABEL_MPS_CAPABLE) == "true"
        for member in members
        if member.node.name in gpu_nodes
    )


def _arrive(seen: _Seen, catalog: Catalog, agent: Agent | None, unshown: Mapping[str, str], now: str) -> _Arrival:
    node, stored = seen.node, seen.stored
    assignment = assignments.assign(catalog, node, stored)
    # What an agent that is not at work has told may be outdated; the kubelet is right then.
    told = stored if agent is not None and agent.ready else None
    showing = capacity.compare(node, told, unshown.get(node.name, ""), now)
    progress = None
    if agent is not None:
        kept = assignment.refusal is not None
        progress = rollouts.progress_of(assignment.config, stored, agent, kept=kept, unshown=showing.waits)
    return _Arrival(seen=seen, agent=agent, assignment=assignment, showing=showing, progress=progress)


def _uses_fractions(members: Collection[Member], gpu_nodes: Mapping[str, GPUNode]) -> bool:
    if any(catalogs.fractions_of(config) for config in {member.assignment.config for member in members}):
        return True
    return any(
        gpu_nodes[member.node.name].status.fractions is not None for member in members if member.node.name in gpu_nodes
    )


def _member(arrival: _Arrival, held: str, now: str) -> Member:
    seen, agent, assignment, progress = arrival.seen, arrival.agent, arrival.assignment, arrival.progress
    node, stored = seen.node, seen.stored
    if held and stored is not None and stored.config is not None:
        assignment = Assignment(config=stored.config, key=assignment.key)
        if progress is not None and not progress.remedy:  # an agent in trouble is what people have to hear of
            progress = replace(progress, phase=Phase.HELD, text=held)
    config = assignment.config
    has_config = stored is not None and stored.config == config
    before = stored.status.conditions if stored is not None else ()
    about_discovery = seen.sight.condition
    if seen.sight.returned and seen.change is not None:
        # What was lost with the labels is put back now; until that is written, it is known by this condition.
        about_discovery = _stored(before, DISCOVERED)
    about_capacity = arrival.showing.condition
    ours = (
        assignments.condition_of(node.name, assignment),
        agents.condition_of(node, agent),
        about_discovery,
        about_capacity,
    )
    told = with_times((condition for condition in ours if condition is not None), before, now)
    is_told = set(told) <= set(before) and all(
        about is not None or _stored(before, kind) is None
        for kind, about in ((DISCOVERED, about_discovery), (CAPACITY_SHOWN, about_capacity))
    )
    return Member(
        node=node,
        assignment=assignment,
        progress=progress,
        spec=None if has_config else GPUNodeSpec(name=node.name, node_uid=node.uid, config=config),
        # Always all: what is left out of an application is taken back.
        conditions=None if is_told else GPUNodeConditions(name=node.name, conditions=told),
        known=has_config and told[0] in before,
        devices=_stored(before, DEVICES_READY),
        showing=arrival.showing,
    )


def _stored(conditions: Iterable[Condition], kind: str) -> Condition | None:
    return next((condition for condition in conditions if condition.type == kind), None)


def build_removal(snapshot: Snapshot) -> Fleet:
    """No policy: nothing of ours stays on any node."""
    changes = (
        nodes.build_change(node, Wanted(labels={})) for node in sorted(snapshot.nodes, key=lambda node: node.name)
    )
    return Fleet(
        labels=tuple(change for change in changes if change is not None), removals=_removals(snapshot, keep=set())
    )


def _removals(snapshot: Snapshot, *, keep: set[str]) -> tuple[GPUNodeRemoval, ...]:
    gone = [gpu_node for gpu_node in snapshot.gpu_nodes if gpu_node.name not in keep]
    return tuple(GPUNodeRemoval(name=g.name, uid=g.uid) for g in sorted(gone, key=lambda g: g.name))
