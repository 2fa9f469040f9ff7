"""From the models of the text to the value that the rest of the program knows. Used by `parsing`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpushare import names
from gpushare.api import schema
from gpushare.api.sharing import DiscoveryFlags, Extension, Flags, Imex, PluginFlags, SharedResource, SharingConfig
from gpushare.domain.fractions import Dialect, FractionMode, Isolation
from gpushare.domain.pools import Allocation, Strategy

UNITS: Final = {"GiB": 1024, "MiB": 1, "256MiB": 256}
"""MiB of each value of `gpushare.memoryUnit`."""


def blocks_of(model: schema.Configuration) -> Iterator[tuple[str, schema.Replicated]]:
    """The blocks under `sharing` that are there, with their keys."""
    if model.sharing is not None:
        if model.sharing.time_slicing is not None:
            yield "timeSlicing", model.sharing.time_slicing
        if model.sharing.mps is not None:
            yield "mps", model.sharing.mps


def offered_as(block: schema.Replicated, entry: schema.Entry) -> str:
    """The name under which an entry's shares are offered: an explicit one first; none where nothing is shared."""
    if entry.replicas == 1:
        return entry.name
    return entry.rename or (entry.name + names.SUFFIX_RENAMED if block.rename_by_default else entry.name)


def config_of(model: schema.Configuration) -> SharingConfig:
    """The configuration of a model that was found to be free of contradictions."""
    word, block = next(blocks_of(model), ("", None))
    entries = block.resources if block is not None else []
    resources = tuple(
        SharedResource(
            path=f"sharing.{word}.resources[{position}]",
            name=entry.name,
            replicas=entry.replicas,
            offered_as=offered_as(block, entry) if block is not None else entry.name,
            devices=entry.devices,
        )
        for position, entry in enumerate(entries)
    )
    strategy = Strategy.MPS if word == "mps" else Strategy.TIME_SLICING
    refuses = block.fail_requests_greater_than_one if block is not None else False
    return SharingConfig(
        strategy=strategy if any(resource.replicas > 1 for resource in resources) else Strategy.NONE,
        resources=resources,
        # Unset means true for MPS: two shares are still one client's memory limit. As NVIDIA's plugin has it.
        fail_requests_greater_than_one=word == "mps" if refuses is None else refuses,
        flags=_flags_of(model.flags),
        imex=Imex(
            channel_ids=tuple(model.imex.channel_ids or ()) if model.imex else (),
            required=bool(model.imex and model.imex.required),
        ),
        extension=_extension_of(model.gpushare),
    )


def _flags_of(block: schema.FlagsBlock | None) -> Flags:
    if block is None:
        return Flags()
    fields = dict(block)
    plugin, gfd = fields.pop("plugin"), fields.pop("gfd")
    return Flags(
        **fields, plugin=_plugin_flags_of(plugin), gfd=DiscoveryFlags(**dict(gfd)) if gfd else DiscoveryFlags()
    )


def _plugin_flags_of(block: schema.PluginBlock | None) -> PluginFlags:
    if block is None:
        return PluginFlags()
    fields = dict(block)
    strategies, policy = fields.pop("device_list_strategy"), fields.pop("shared_devices_allocation_policy")
    return PluginFlags(
        **fields,
        device_list_strategy=tuple(strategies) if strategies is not None else None,
        shared_devices_allocation_policy=Allocation(policy) if policy else None,
    )


def _extension_of(block: schema.ExtensionBlock | None) -> Extension:
    if block is None:
        return Extension()
    return Extension(on_shrink=block.on_shrink, allocation=block.allocation, fractions=_fractions_of(block))


def _fractions_of(block: schema.ExtensionBlock) -> FractionMode | None:
    if block.fractions == "none":
        return None
    return FractionMode(
        dialect=Dialect(block.fractions),
        # A GPU that is given to one container alone has one share.
        slots=1 if block.isolation is Isolation.EXCLUSIVE else block.slots,
        unit_mib=UNITS[block.memory_unit],
        placement=block.placement,
        isolation=block.isolation,
        compute=block.compute,
        memory_scaling=block.memory_scaling,
        core_scaling=block.core_scaling,
    )
