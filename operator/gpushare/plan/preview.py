"""What a change of policies, ConfigMaps and labels would make of every node: configuration, resources, labels, pods.

Decided by the controller's own `build`; what agents would then report is `outlook`. Called by `gpushare plan`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from gpushare.api.clusterpolicy import parse_policy
from gpushare.domain.gpunode import Config, GPUNode
from gpushare.plan import assignments, catalogs, fleet, policies, status
from gpushare.plan.braking import Candidate
from gpushare.plan.build import Plan, build_plan
from gpushare.plan.fleet import Member
from gpushare.plan.nodes import NodeLabels
from gpushare.plan.outlook import Hardware, Outlook, look_out
from gpushare.plan.rehearsal import Rehearsal, outcome_of, rehearse
from gpushare.plan.snapshot import Node, Settings, Snapshot
from gpushare.plan.status import PolicyStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Overuse:
    """A resource of which more is in use than there would be. Its pods stay; new ones wait."""

    resource: str
    in_use: int
    total: int
    pods: tuple[str, ...] = ()
    """All that use it, as `namespace/name`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePreview:
    """One node, before and after."""

    name: str
    before: Config | None = None
    """None: nothing was given to it."""
    after: Config | None = None
    resources_before: Mapping[str, int] = field(default_factory=dict)
    resources_after: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)
    """Those that change, before and after; None: not there."""
    overuse: tuple[Overuse, ...] = ()
    refusals: tuple[str, ...] = ()
    """Why it keeps what it has."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """All nodes that have to do with us, before or after."""

    policy: str = ""
    """The one that would be followed; empty: none."""
    nodes: tuple[NodePreview, ...] = ()
    refusals: tuple[str, ...] = ()
    """What is wrong with the policy or its ConfigMap as a whole."""
    warnings: tuple[str, ...] = ()
    rehearsal: Rehearsal = field(default_factory=Rehearsal)
    """How far the roll-out would come, and in which steps."""

    @property
    def refused(self) -> bool:
        """Whether anything would be refused."""
        return bool(self.refusals) or any(node.refusals for node in self.nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Future:
    """What becomes of the cluster."""

    plan: Plan
    """Of the first pass."""
    held: bool
    """The policy cannot be acted upon: everything stays."""
    members: Mapping[str, Member]
    outlooks: Mapping[str, Outlook]
    labels: Mapping[str, NodeLabels]
    """Of the pass that follows what agents report."""
    rehearsal: Rehearsal


def build_preview(before: Snapshot, after: Snapshot, hardware: Mapping[str, Hardware], now: str) -> Preview:
    """Compares the cluster as it is with what controller and agents come to once a change is made.

    Args:
        before: as it is.
        after: the same with the change laid over.
        hardware: of each node.
        now: RFC 3339 time.
    """
    future = _foresee(after, hardware, now)
    stored = {gpu_node.name: gpu_node for gpu_node in before.gpu_nodes}
    nodes = {node.name: node for node in before.nodes}
    previews = [
        _preview(nodes[node.name], node, stored.get(node.name), hardware.get(node.name, Hardware()), future)
        for node in sorted(after.nodes, key=lambda node: node.name)
    ]
    return Preview(
        policy=future.plan.active,
        nodes=tuple(each for each in previews if each.before is not None or each.after is not None or each.labels),
        refusals=tuple(_refusals(future)),
        warnings=tuple(_warnings(future.plan)),
        rehearsal=future.rehearsal,
    )


def _foresee(after: Snapshot, hardware: Mapping[str, Hardware], now: str) -> _Future:
    # Without what is stored of their status, so that the plan says all of it and not only what differs.
    bare = replace(after, policies=tuple(replace(policy, conditions=(), state="") for policy in after.policies))
    plan = build_plan(bare, now)
    active = _active(plan)
    held = bool(plan.misnamed) or (active is not None and not _messages(active, status.CONFIG_VALID, "True", "False"))
    # As if there were no brake, to see what every node would come to; then, how far it lets them come.
    unbraked = replace(bare, settings=replace(bare.settings, canary=None, stop_on_refusal=False))
    members = {} if held or active is None else _members(unbraked, now)
    before = {gpu_node.name: gpu_node for gpu_node in after.gpu_nodes}
    stored = dict(before)
    outlooks: dict[str, Outlook] = {}
    for name, member in members.items():
        # An agent that is opted out offers nothing and tells nothing.
        runs = member.progress is not None
        known = hardware.get(name, Hardware())
        outlooks[name] = look_out(member.assignment.config, stored.get(name), known) if runs else Outlook()
        stored[name] = _followed(member, stored.get(name), outlooks[name])
    rehearsal = _rehearse(members, before, outlooks, bare.settings)
    stored |= {name: before[name] for name in rehearsal.held}
    settled = build_plan(replace(bare, gpu_nodes=tuple(stored.values())), now)
    labels = {change.name: change for change in settled.node_labels}
    return _Future(plan=plan, held=held, members=members, outlooks=outlooks, labels=labels, rehearsal=rehearsal)


def _rehearse(
    members: Mapping[str, Member], stored: Mapping[str, GPUNode], outlooks: Mapping[str, Outlook], settings: Settings
) -> Rehearsal:
    candidates = [
        Candidate(
            name=name,
            canary=member.node.canary,
            wanted=member.assignment.config,
            stored=stored[name].config if name in stored else None,
            progress=member.progress,
        )
        for name, member in members.items()
    ]
    outcomes = {
        name: outcome_of(member.progress, outlooks[name].refusals)
        for name, member in members.items()
        if member.progress is not None
    }
    return rehearse(candidates, outcomes, settings)


def _members(snapshot: Snapshot, now: str) -> dict[str, Member]:
    active = policies.choose(snapshot).active
    policy = parse_policy({"spec": active.spec}).policy if active is not None else None
    if policy is None:
        return {}
    whole = fleet.build_fleet(snapshot, policy, catalogs.build_catalog(snapshot, policy), now)
    return {member.node.name: member for member in whole.members}


def _followed(member: Member, stored: GPUNode | None, outlook: Outlook) -> GPUNode:
    """The GPUNode once the agent has done what it would."""
    gpu_node = stored or GPUNode(name=member.node.name, node_uid=member.node.uid)
    config = member.assignment.config
    told = replace(gpu_node.status, labels=outlook.labels, applied_revision=config.revision)
    return replace(gpu_node, config=config, status=told)


def _preview(before: Node, after: Node, stored: GPUNode | None, hardware: Hardware, future: _Future) -> NodePreview:
    name = after.name
    labels = _label_changes(before, after, future.labels.get(name))
    member, config = future.members.get(name), stored.config if stored is not None else None
    brake = future.rehearsal.held.get(name, "")
    if member is None:
        kept = hardware.resources if future.held else dict.fromkeys(hardware.resources, 0)
        outlook = Outlook(resources=kept)
        given = config if future.held else None
    elif brake:
        outlook = Outlook(resources=hardware.resources, warnings=(f"keeps what it has: {brake}",))
        given = config
    else:
        outlook = future.outlooks[name]
        given = member.assignment.config
    refusal = member.assignment.refusal if member is not None else None
    kept_texts = (assignments.describe(name, member.assignment, refusal),) if member and refusal else ()
    resources = {**dict.fromkeys(hardware.resources, 0), **outlook.resources}
    return NodePreview(
        name=name,
        before=config,
        after=given,
        resources_before=hardware.resources,
        resources_after=resources,
        labels=labels,
        overuse=tuple(_overuse(hardware, resources)),
        refusals=(*kept_texts, *outlook.refusals),
        warnings=(*(member.assignment.warnings if member is not None and not brake else ()), *outlook.warnings),
    )


def _label_changes(before: Node, after: Node, change: NodeLabels | None) -> dict[str, tuple[str | None, str | None]]:
    labels = dict(after.labels)
    if change is not None:
        labels = {key: value for key, value in labels.items() if key not in after.owned} | dict(change.labels)
    return {
        key: (before.labels.get(key), labels.get(key))
        for key in sorted(before.labels.keys() | labels.keys())
        if before.labels.get(key) != labels.get(key)
    }


def _overuse(hardware: Hardware, resources: Mapping[str, int]) -> Iterator[Overuse]:
    for resource in hardware.status.resources:
        total = resources.get(resource.name, 0)
        if resource.allocated > total:
            pods = {
                f"{held.namespace}/{held.pod}" for held in hardware.status.allocations if held.resource == resource.name
            }
            yield Overuse(resource=resource.name, in_use=resource.allocated, total=total, pods=tuple(sorted(pods)))


def _active(plan: Plan) -> PolicyStatus | None:
    return next((each for each in plan.policies if each.name == plan.active), None)


def _refusals(future: _Future) -> Iterator[str]:
    if future.plan.misnamed:
        yield future.plan.misnamed
    active = _active(future.plan)
    if active is None:
        return
    error = next((each for each in active.conditions if each.type == status.ERROR), None)
    if error is not None and error.reason == status.RECONCILE_FAILED:
        yield error.message
    # What hits nodes is told with each of them.
    if not any(member.assignment.refusal for member in future.members.values()):
        yield from _messages(active, status.CONFIG_VALID, "False")


def _messages(policy: PolicyStatus, kind: str, *statuses: str) -> tuple[str, ...]:
    return tuple(each.message for each in policy.conditions if each.type == kind and each.status in statuses)


def _warnings(plan: Plan) -> Iterator[str]:
    for policy in plan.policies:
        if policy.state == status.STATE_IGNORED:
            for message in _messages(policy, status.ERROR, "True"):
                yield f'ClusterPolicy "{policy.name}" decides nothing: {message}'
