"""Which sharing configuration each node gets, and what is wrong where it cannot get the one that is named.

The node's label before labels of other systems, these before the policy's default; else not shared. Where what is named
cannot be used, the node keeps what it has, byte for byte, and a node that has nothing yet starts unshared. Called by `fleet`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from gpushare import names
from gpushare.domain.conditions import Condition
from gpushare.domain.gpunode import CONFIG_ASSIGNED, Config, ConfigReason, GPUNode
from gpushare.plan import schedules, wording
from gpushare.plan.catalogs import Catalog, Refusal
from gpushare.plan.nodes import WORKLOADS
from gpushare.plan.snapshot import Node

_ORIGINS: Final = {
    ConfigReason.LABEL: f"the label {names.LABEL_CONFIG}",
    ConfigReason.ACK: f"the label {names.LABEL_ACK_SCHEDULE}",
    ConfigReason.HAMI: f"the label {names.LABEL_HAMI_NODE}",
    ConfigReason.DEFAULT: "devicePlugin.config.default of the policy",
}
"""Where a key is named: the place to open when it is wrong."""
_REASONS: Final = {
    ConfigReason.LABEL: "NamedByLabel",
    ConfigReason.ACK: "NamedByLabel",
    ConfigReason.HAMI: "NamedByLabel",
    ConfigReason.DEFAULT: "NamedByDefault",
    ConfigReason.NONE: "NotShared",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What one node gets."""

    config: Config
    key: str = ""
    """What the label or the default names."""
    refusal: Refusal | None = None
    """Set: `config` is what the node has had before."""
    warnings: tuple[str, ...] = ()


def describe(node: str, assignment: Assignment, refusal: Refusal) -> str:
    """What a refusal means for one node, in one sentence."""
    config = assignment.config
    kept = f'keeps "{config.name}" (revision {config.revision})' if config.is_named else "stays unshared"
    return f"{node} {kept}: {refusal.text}"


def assign(catalog: Catalog, node: Node, gpu_node: GPUNode | None) -> Assignment:
    """The configuration of one node.

    Args:
        catalog: the configurations to choose from.
        node: its labels choose.
        gpu_node: what the node has now; None for a node that has nothing yet.
    """
    found, idle = _choose(catalog, node, gpu_node), tuple(_idle_labels(catalog, node))
    return replace(found, warnings=(*found.warnings, *idle)) if idle else found


def _choose(catalog: Catalog, node: Node, gpu_node: GPUNode | None) -> Assignment:
    label = node.labels.get(names.LABEL_CONFIG, "") if catalog.name else ""
    key = label or catalog.default
    kept = gpu_node.config if gpu_node is not None and gpu_node.config is not None else catalog.unshared
    if not label and (found := schedules.find_entry(node, catalog.settings, catalog.policy.mig.strategy)) is not None:
        config = found.config if found.refusal is None else kept
        return Assignment(config=config, refusal=found.refusal, warnings=found.warnings)
    refusal = catalog.missing
    if refusal is None:
        if not key:
            return Assignment(config=catalog.unshared)
        entry = catalog.entry(key)
        if entry.refusal is None:
            # The entry was read for the default; it is one text, whoever named it.
            config = replace(entry.config, reason=ConfigReason.LABEL) if label else entry.config
            return Assignment(config=config, key=key, warnings=entry.warnings)
        refusal = _named_by(ConfigReason.LABEL if label else ConfigReason.DEFAULT, entry.refusal)
    return Assignment(config=kept, key=key, refusal=refusal)


def _idle_labels(catalog: Catalog, node: Node) -> Iterator[str]:
    """What is to be said of labels of a person that count for nothing."""
    if (key := node.labels.get(names.LABEL_CONFIG)) and not catalog.name:
        origin = _ORIGINS[ConfigReason.LABEL]
        yield f'{origin} names "{key}", which means nothing while devicePlugin.config.name of the policy is empty'
    workload = node.labels.get(names.LABEL_WORKLOAD_CONFIG)
    if workload and workload not in WORKLOADS and catalog.policy.is_enabled("sandbox_workloads"):
        known = ", ".join(sorted(WORKLOADS))
        yield f'the label {names.LABEL_WORKLOAD_CONFIG} says "{workload}", which counts for nothing; write one of {known}'


def condition_of(node: str, assignment: Assignment) -> Condition:
    """`ConfigAssigned` of one node, without its times.

    While all is well it names no revision and no generation: an edited ConfigMap is one write a node, not two.
    """
    refusal = assignment.refusal
    if refusal is not None:
        reason, message = refusal.reason, describe(node, assignment, refusal)
    else:
        reason, message = _REASONS[assignment.config.reason], _named(assignment)
    return Condition(
        type=CONFIG_ASSIGNED,
        status="True" if refusal is None else "False",
        reason=reason,
        message=wording.joined([message, *assignment.warnings]),
    )


def _named(assignment: Assignment) -> str:
    source = assignment.config.source
    if not assignment.config.is_named:
        return "no configuration is named for this node: its GPUs are not shared"
    if source is None:
        return f"the label {assignment.config.title} says how this node is shared"
    origin = _ORIGINS[assignment.config.reason]
    return f'{origin} names "{source.key}" of ConfigMap {source.namespace}/{source.name}'


def _named_by(reason: ConfigReason, refusal: Refusal) -> Refusal:
    return replace(refusal, text=f"{_ORIGINS[reason]} names {refusal.text}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the policy says about its configurations as a whole."""

    refusals: tuple[Refusal, ...] = ()
    """Each with the nodes concerned; what hits the policy itself first."""
    warnings: tuple[str, ...] = ()
    used: Mapping[str, Config]
    """Valid configurations that some node gets, by name."""


def build_verdict(catalog: Catalog, assignments: Mapping[str, Assignment]) -> Verdict:
    """Sums up: every problem once, with the nodes that it concerns."""
    refused: dict[Refusal, list[str]] = {}
    for node in sorted(assignments):
        if (refusal := assignments[node].refusal) is not None:
            refused.setdefault(refusal, []).append(node)
    whole = _policy_refusal(catalog)
    refusals = [_with_nodes(refusal, nodes, assignments) for refusal, nodes in refused.items()]
    if whole is not None and whole not in refused:
        refusals.insert(0, whole)
    named = [a for a in assignments.values() if a.refusal is None and a.config.is_named]
    used = {a.config.name: a.config for a in named}
    warnings = {warning for a in assignments.values() if a.refusal is None for warning in a.warnings}
    return Verdict(
        refusals=tuple(refusals),
        warnings=(*sorted(warnings), *_unused(catalog, {a.key for a in assignments.values()})),
        used=dict(sorted(used.items())),
    )


def _policy_refusal(catalog: Catalog) -> Refusal | None:
    """What is wrong with the ConfigMap or the default, whether or not a node would get it now."""
    if (missing := catalog.missing) is not None:
        return missing
    if not catalog.default or (refusal := catalog.entry(catalog.default).refusal) is None:
        return None
    return _named_by(ConfigReason.DEFAULT, refusal)


def _with_nodes(refusal: Refusal, nodes: list[str], assignments: Mapping[str, Assignment]) -> Refusal:
    if len(nodes) == 1:
        return replace(refusal, text=describe(nodes[0], assignments[nodes[0]], refusal))
    return replace(refusal, text=f"{refusal.text}; {wording.listed(nodes)} keep what they have")


def _unused(catalog: Catalog, named: Collection[str]) -> list[str]:
    """Keys that nothing names and no node could get: told before somebody puts a label on."""
    if catalog.config_map is None:
        return []
    idle = sorted(catalog.config_map.data.keys() - {catalog.default, *named})
    entries = {key: catalog.entry(key) for key in idle}
    return [f"no node can use {entry.refusal.text}" for entry in entries.values() if entry.refusal is not None]
