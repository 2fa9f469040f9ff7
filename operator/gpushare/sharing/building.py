"""From what a node has and what a configuration says to the pools that are served. Called by the agent, and by previews.

The result depends on nothing but the arguments: not on what was served before, not on the order of changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gpushare.api.sharing import SharedResource, SharingConfig
from gpushare.domain.devices import Inventory, MigStrategy
from gpushare.domain.fractions import FractionMode
from gpushare.domain.pools import Pool, Share, Strategy
from gpushare.domain.shares import ShareId
from gpushare.errors import Problem
from gpushare.sharing import capability, selecting
from gpushare.sharing.layout import Layout, build_layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What a node offers under a configuration, and what is to be said about it."""

    pools: Mapping[str, Pool]
    """By resource name, always safe to serve: with problems, the devices unshared, or nothing where parts of them are in use.
    Base names stay, if only with nothing."""
    problems: tuple[Problem, ...] = ()
    """Why the configuration cannot be had on this node. Whoever serves an older one had better keep it."""
    unserved: tuple[Problem, ...] = ()
    """Devices that fit no resource, such as a MIG instance without a resource name. Nothing to do with sharing."""
    warnings: tuple[Problem, ...] = ()
    """What is odd on this node and served all the same, such as an entry whose resource it lacks."""
    fractions: FractionMode | None = None
    """How parts of GPUs are given out, as it is in force; None: they are not."""


def build_pools(inventory: Inventory, config: SharingConfig, strategy: MigStrategy) -> Built:
    """The pools of a node. The MIG strategy is an argument, since a ClusterPolicy's beats the one in the text."""
    if config.extension.fractions is not None:
        return _fractions(inventory, config, config.extension.fractions)
    layout = build_layout(inventory, strategy)
    entries = [entry for entry in config.resources if entry.replicas > 1]
    problems = list(layout.problems)
    warnings: list[Problem] = []
    if config.strategy is Strategy.MPS:
        problems += capability.check_mps(inventory, config, strategy)
    chosen: dict[str, tuple[Share, ...]] = {}
    for entry in entries:
        selection = selecting.select(entry, layout.devices.get(entry.name), inventory)
        problems += selection.problems
        warnings += selection.warnings
        chosen[entry.name] = selection.shares
        problems += _check(entry, selection.shares, inventory, config, layout)
        if config.strategy is Strategy.MPS:
            warnings += capability.find_small_clients(entry, selection.shares, inventory.gpus)
    if problems:
        chosen = {}
    pools = dict(_pools(layout, [entry for entry in entries if chosen.get(entry.name)], chosen, config))
    return Built(pools=pools, problems=tuple(problems), unserved=layout.unserved, warnings=tuple(warnings))


def _fractions(inventory: Inventory, config: SharingConfig, mode: FractionMode) -> Built:
    from gpushare.sharing import fractions  # late: most agents never need it

    found = fractions.build_pools(inventory, config, mode)
    return Built(pools=found.pools, problems=found.problems, warnings=found.warnings, fractions=found.mode)


def _check(
    entry: SharedResource, shared: Sequence[Share], inventory: Inventory, config: SharingConfig, layout: Layout
) -> Iterator[Problem]:
    if entry.offered_as != entry.name and entry.offered_as in layout.devices:
        message = f'"{entry.offered_as}" is a resource of its own on this node; give another rename'
        yield Problem(path=f"{entry.path}.rename", message=message)
    if not shared:
        return
    yield from capability.check_list_size(entry, shared)
    if config.strategy is Strategy.MPS:
        yield from capability.check_mps_clients(entry, shared, inventory.gpus)


def _pools(
    layout: Layout,
    entries: Sequence[SharedResource],
    chosen: Mapping[str, Sequence[Share]],
    config: SharingConfig,
) -> Iterator[tuple[str, Pool]]:
    by_name = {entry.name: entry for entry in entries}
    for name, devices in layout.devices.items():
        plain = Pool(resource=name, base=name, shares=tuple(devices), allocation=config.allocation)
        entry = by_name.get(name)
        if entry is None:
            yield name, plain
            continue
        shared_ids = {share.id for share in chosen[name]}
        pool = replace(
            plain,
            resource=entry.offered_as,
            strategy=config.strategy,
            replicas=entry.replicas,
            fail_requests_greater_than_one=config.fail_requests_greater_than_one,
        )
        if pool.renamed:
            rest = tuple(device for device in devices if device.id not in shared_ids)
            yield name, replace(plain, shares=rest)
        own = chosen[name] if pool.renamed else devices
        shares = tuple(share for device in own for share in _split(device, entry.replicas, shared_ids))
        yield entry.offered_as, replace(pool, shares=shares)


def _split(device: Share, replicas: int, shared_ids: set[ShareId]) -> Iterator[Share]:
    if device.id not in shared_ids:
        yield device
        return
    for number in range(replicas):
        yield replace(device, id=ShareId(device.id.device, number))
