"""From what is to what should be: a snapshot goes in, a plan comes out. Called by the controller once a pass.

Everything in a plan is a difference: a cluster that is as it should be gives a plan without writes (components apart, which
the controller renders and compares).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from gpushare.api.clusterpolicy import parse_policy
from gpushare.domain import manifests
from gpushare.domain.conditions import Condition
from gpushare.domain.events import EventNote
from gpushare.domain.manifests import ObjectKey
from gpushare.plan import (
    catalogs,
    components,
    conflicts,
    events,
    fleet,
    podsecurity,
    policies,
    pruning,
    results,
    rollouts,
    status,
    taints,
    unfollowed,
)
from gpushare.plan.catalogs import Catalog
from gpushare.plan.components import Component
from gpushare.plan.events import Note, Standing, Topic
from gpushare.plan.fleet import Fleet, GPUNodeConditions, GPUNodeRemoval, GPUNodeSpec
from gpushare.plan.nodes import NodeLabels
from gpushare.plan.snapshot import LiveObject, Policy, Snapshot
from gpushare.plan.status import Outcome, PolicyStatus
from gpushare.plan.taints import NodeTaint


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one pass has to do, in the order of the fields."""

    active: str = ""
    """Name of the policy that is followed; empty: there is none."""
    misnamed: str = ""
    """Why nothing is changed though there is none: it is not the one that was named."""
    components: tuple[Component, ...] = ()
    """To render, decorate, order and apply, where it differs from what is there."""
    pod_security: Mapping[str, str] | None = None
    """Labels of the operator's namespace, all that are ours; None: they are as they should be."""
    gpu_nodes: tuple[GPUNodeSpec, ...] = ()
    gpu_node_conditions: tuple[GPUNodeConditions, ...] = ()
    node_labels: tuple[NodeLabels, ...] = ()
    node_taints: tuple[NodeTaint, ...] = ()
    """Before the configurations: no plain pod may meet slots for fractions."""
    prune: tuple[LiveObject, ...] = ()
    """To delete, each only with its uid."""
    gpu_node_removals: tuple[GPUNodeRemoval, ...] = ()
    policies: tuple[PolicyStatus, ...] = ()
    events: tuple[EventNote, ...] = ()
    standing: Standing = field(default_factory=dict)
    """To be given to the next pass."""
    unshown: Mapping[str, str] = field(default_factory=dict)
    """`Snapshot.unshown` of the next pass."""
    takes_over: bool = False
    """An object is there that somebody else has made, and will be ours: to be looked at twice."""
    wake_seconds: float | None = None
    """When there will be something to do though nothing is seen; None: never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Acted:
    """What became of the active policy."""

    outcome: Outcome
    components: tuple[Component, ...] = ()
    pod_security: Mapping[str, str] | None = None
    fleet: Fleet = field(default_factory=Fleet)
    prune: tuple[LiveObject, ...] = ()
    takes_over: bool = False
    catalog: Catalog | None = None
    """None: the policy was not acted upon, and nothing is changed on its account."""
    facts: tuple[GPUNodeConditions, ...] = ()
    """What is told of nodes though the policy was not acted upon."""


def build_plan(snapshot: Snapshot, now: str, before: Standing | None = None) -> Plan:
    """Decides everything.

    Args:
        snapshot: what the controller saw.
        now: RFC 3339 time, for conditions that change.
        before: `standing` of the last plan; None in the first pass of a process.
    """
    choice = policies.choose(snapshot)
    if misnamed := policies.describe_misnamed(snapshot):
        return Plan(misnamed=misnamed, gpu_node_conditions=unfollowed.build_conditions(snapshot, now))
    if choice.active is None:
        gone = fleet.build_removal(snapshot)
        prune = pruning.build_prune(snapshot.objects, wanted=(), held=())
        return Plan(
            pod_security=podsecurity.build_change(snapshot.pod_security, None),
            node_labels=gone.labels,
            node_taints=taints.build_taints(snapshot, ()),
            prune=prune,
            gpu_node_removals=gone.removals,
        )
    acted = _with_permissions(_act(snapshot, choice.active, now), snapshot.missing_rights, choice.active)
    outcomes = [(choice.active, acted.outcome), *((policy, status.ignored(choice.active)) for policy in choice.ignored)]
    statuses = [
        status.build_status(policy, outcome, namespace=snapshot.settings.namespace, now=now)
        for policy, outcome in outcomes
    ]
    notes = _notes(outcomes, acted)
    posted, standing = events.build_events(before, notes, partial=acted.catalog is None)
    members = acted.fleet.members
    return Plan(
        active=choice.active.name,
        components=acted.components,
        pod_security=acted.pod_security,
        gpu_nodes=tuple(member.spec for member in members if member.spec is not None),
        gpu_node_conditions=(
            *acted.facts,
            *(member.conditions for member in members if member.conditions is not None),
        ),
        node_labels=acted.fleet.labels,
        node_taints=taints.build_taints(snapshot, members) if acted.catalog is not None else (),
        prune=acted.prune,
        gpu_node_removals=acted.fleet.removals,
        policies=tuple(item for item in statuses if item is not None),
        events=posted,
        standing=standing,
        unshown=acted.fleet.unshown if acted.catalog is not None else snapshot.unshown,
        takes_over=acted.takes_over,
        wake_seconds=acted.fleet.wake_seconds,
    )


def build_blocked(snapshot: Snapshot, now: str, problem: str) -> PolicyStatus | None:
    """The status of the active policy while so little can be seen that nothing else may be decided.

    Args:
        snapshot: as far as it is known.
        now: RFC 3339 time, for conditions that change.
        problem: what stands in the way.
    """
    active = policies.choose(snapshot).active
    if active is None:
        return None
    acted = _with_permissions(_Acted(outcome=status.failed([problem])), snapshot.missing_rights, active)
    return status.build_status(active, acted.outcome, namespace=snapshot.settings.namespace, now=now)


def _with_permissions(acted: _Acted, missing_rights: str, active: Policy) -> _Acted:
    """Says of missing rights, and takes that back; who never lacked any is told nothing."""
    told = any(condition.type == status.PERMITTED for condition in active.conditions)
    if not missing_rights and not told:
        return acted
    others = (*acted.outcome.others, status.permitted(missing_rights))
    return replace(acted, outcome=replace(acted.outcome, others=others))


def _act(snapshot: Snapshot, active: Policy, now: str) -> _Acted:
    """Follows the active policy, or leaves everything alone where that is not possible."""
    parsed = parse_policy({"spec": active.spec})
    if parsed.policy is None:
        problems = [*map(str, parsed.problems), *unfollowed.describe_loss(snapshot)]
        return _Acted(outcome=status.failed(problems), facts=unfollowed.build_conditions(snapshot, now))
    if blocking := conflicts.find_blocking(snapshot, active):
        outcome = status.failed(blocking, [status.conflict(blocking)])
        is_left = conflicts.is_followed_by_another(snapshot, active)
        return _Acted(outcome=replace(outcome, is_left=is_left), facts=unfollowed.build_conditions(snapshot, now))
    policy = parsed.policy
    catalog = catalogs.build_catalog(snapshot, policy)
    whole = fleet.build_fleet(snapshot, policy, catalog, now)
    built = components.build_device_plugin(snapshot, active, policy)
    wanted: tuple[Component, ...] = ()
    if (agent := built.component) is not None:
        others = components.build_others(
            snapshot, policy, agent, uses_mps=whole.uses_mps, uses_fractions=whole.uses_fractions
        )
        wanted = (agent, *others)
    keys = [key for component in wanted for key in components.keys_of(component)]
    return _Acted(
        outcome=results.build_outcome(snapshot, policy, catalog, whole, built),
        components=tuple(each for each in wanted if not components.keys_of(each) & snapshot.lost_objects),
        pod_security=podsecurity.build_change(snapshot.pod_security, policy),
        fleet=whole,
        prune=pruning.build_prune(snapshot.objects, wanted=keys, held=components.STATES if built.problems else ()),
        takes_over=any(item.key in keys and not item.managed for item in snapshot.objects),
        catalog=catalog,
    )


def _notes(outcomes: list[tuple[Policy, Outcome]], acted: _Acted) -> Mapping[Topic, Note]:
    notes: dict[Topic, Note] = {}
    for policy, outcome in outcomes:
        conditions = status.conditions_of(outcome)
        known = events.known_types(policy, conditions)
        key = ObjectKey(manifests.CLUSTER_POLICY, policy.name)
        told = conditions
        if outcome is acted.outcome and acted.catalog is not None:
            news = status.rollout_news(rollouts.summarise(acted.fleet.expected))
            told = tuple(news if (c.type, c.reason) == (news.type, news.reason) else c for c in conditions)
            if acted.catalog.name:
                notes |= _config_map_notes(acted.catalog, acted.fleet, conditions, known)
        notes |= events.condition_notes(key, policy.uid, told, known)
    for member in acted.fleet.members:
        if member.progress is not None:
            notes |= events.node_notes(member.node, member.assignment, member.progress, known=member.known)
            notes |= events.health_notes(member.node, member.devices)
            notes |= events.capacity_notes(member.node, member.showing)
    return notes


def _config_map_notes(
    catalog: Catalog, whole: Fleet, conditions: Iterable[Condition], known: Collection[str]
) -> Mapping[Topic, Note]:
    """The same once more in the operator's namespace, where people look, but only of nodes that got a key of the ConfigMap.

    What the others run, or keep from before, would read as if it stood in this one.
    """
    members = {
        name: progress
        for name, progress in whole.expected.items()
        if whole.assigned[name].refusal is None and catalog.holds(progress.config.source)
    }
    told = [condition for condition in conditions if condition.type == status.CONFIG_VALID]
    told.append(status.rollout_news(rollouts.summarise(members)))
    uid = catalog.config_map.uid if catalog.config_map is not None else ""
    return events.condition_notes(catalog.key, uid, told, known)
