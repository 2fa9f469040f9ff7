"""What the agent of one node would report once it has been given a configuration. Used by `preview`.

By the agent's own pools and labels. Flags that the policy's `devicePlugin.env` or `args` give to the agent are not weighed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from gpushare import names
from gpushare.api.parsing import parse_sharing
from gpushare.api.sharing import OnShrink
from gpushare.domain.devices import Inventory
from gpushare.domain.gpunode import Config, GPUNode, GPUNodeStatus
from gpushare.labels.building import build_labels
from gpushare.labels.facts import HostFacts
from gpushare.plan.shrinking import find_shrinking
from gpushare.plan.validation import strategy_of
from gpushare.sharing.building import Built, build_pools
from gpushare.sharing.capability import with_mps_root

_SHARING: Final = re.compile(
    r".*(?:\.replicas|\.sharing-strategy|\.product|/mps\.capable|/mig\.strategy|/gpu\.fractions|\.isolation)"
)
"""Labels that follow from the configuration and from what agents tell of GPUs, and from nothing else."""
_UNTOLD: Final = re.compile(r".*\.(?:multiprocessors|slices\..*|engines\..*)")
"""Labels about what agents do not tell of."""


_MACHINE: Final = f"{names.PREFIX}gpu.machine"
"""What only the machine itself knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """What is known of one node beyond a snapshot, which leaves it out."""

    inventory: Inventory | None = None
    """None: no agent has told of it."""
    status: GPUNodeStatus = field(default_factory=GPUNodeStatus)
    """Whole, with resources and allocations."""

    @property
    def resources(self) -> Mapping[str, int]:
        """Shares offered now, by resource."""
        return {resource.name: resource.total for resource in self.status.resources}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """Resources and labels to come."""

    resources: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    refusals: tuple[str, ...] = ()
    """Why the agent would keep what it has."""
    warnings: tuple[str, ...] = ()


def look_out(config: Config, stored: GPUNode | None, hardware: Hardware) -> Outlook:
    """Looks ahead.

    Args:
        config: what the node would be given.
        stored: what it has been given before; None: nothing.
        hardware: of the node.
    """
    told = hardware.status
    if stored is not None and stored.config == config and told.applied_revision == config.revision:
        return Outlook(resources=hardware.resources, labels=told.labels)
    if hardware.inventory is None:
        return Outlook(warnings=("its GPUs are not known before its agent has run",))
    built, labels = _build(config, hardware.inventory)
    refusals = tuple(map(str, built.problems))
    if not refusals and _refuses_to_shrink(config):
        refusals = tuple(find_shrinking(told, built.pools, hardware.inventory))
    if refusals and told.applied_revision is not None:
        return Outlook(resources=hardware.resources, labels=told.labels, refusals=refusals)
    return Outlook(
        resources={**dict.fromkeys(hardware.resources, 0), **{n: len(p.shares) for n, p in built.pools.items()}},
        labels=labels if stored is None else _changed(stored, hardware, labels),
        refusals=refusals,
        warnings=(*map(str, (*built.unserved, *built.warnings)), *_unforeseen(stored, told, labels)),
    )


def _refuses_to_shrink(config: Config) -> bool:
    parsed = parse_sharing(config.content).config
    return parsed is not None and parsed.extension.on_shrink is OnShrink.REFUSE


def _unforeseen(stored: GPUNode | None, told: GPUNodeStatus, labels: Mapping[str, str]) -> Iterator[str]:
    if stored is not None and any(_UNTOLD.fullmatch(key) for key in labels.keys() - told.labels.keys()):
        yield "its agent will also set labels about multiprocessors, slices and engines, which only it knows"


def _build(config: Config, inventory: Inventory) -> tuple[Built, dict[str, str]]:
    parsed = parse_sharing(config.content).config or parse_sharing("").config
    assert parsed is not None
    strategy = strategy_of(parsed, config.mig_strategy)
    built = build_pools(inventory, with_mps_root(parsed), strategy)
    labels = build_labels(inventory, built.pools, HostFacts(), strategy)
    return built, {key: value for key, value in labels.items() if key != _MACHINE}


def _changed(stored: GPUNode, hardware: Hardware, after: Mapping[str, str]) -> Mapping[str, str]:
    """What was told, with the labels that another configuration changes: what only the machine knows stays."""
    assert hardware.inventory is not None
    told = hardware.status.labels
    before = _build(stored.config or Config(), hardware.inventory)[1]
    labels = dict(told)
    for key in before.keys() | after.keys():
        if (before.get(key) == after.get(key) and not _SHARING.fullmatch(key)) or _UNTOLD.fullmatch(key):
            continue
        if key in after:
            labels[key] = after[key]
        else:
            labels.pop(key, None)
    return labels
