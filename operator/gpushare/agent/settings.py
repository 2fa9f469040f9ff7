"""What is in force once command line, policy and configuration text have been weighed against each other.

Precedence as in NVIDIA's device plugin and operator: what was said to this process, then the policy's MIG strategy, then
the text, then the default.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TypeVar

from gpushare.agent.options import AgentOptions
from gpushare.api.sharing import Flags, Imex, ListStrategy, PluginFlags, SharingConfig
from gpushare.domain.devices import MigStrategy
from gpushare.errors import Problem
from gpushare.host.devices import read_control_devices, read_imex_channels
from gpushare.host.driver_roots import find_device_root, find_root
from gpushare.host.files import HostFiles
from gpushare.sharing.responses import ResponseOptions

F = TypeVar("F", Flags, PluginFlags)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A configuration with everything decided."""

    config: SharingConfig
    """With the flags of the command line in the place of those of the text."""
    mig_strategy: MigStrategy
    list_strategies: frozenset[ListStrategy]


def settle(options: AgentOptions, config: SharingConfig, policy_strategy: str) -> Settings:
    """Weighs what the command line, the policy (its MIG strategy; empty: none) and the text say."""
    said, text = options.flags, config.flags
    strategy = said.mig_strategy or _strategy_of(policy_strategy) or text.mig_strategy or MigStrategy.NONE
    flags = _over(said, text)
    flags = replace(flags, mig_strategy=strategy, plugin=_over(said.plugin, text.plugin))
    imex = Imex(
        channel_ids=config.imex.channel_ids if options.imex_channel_ids is None else options.imex_channel_ids,
        required=config.imex.required if options.imex_required is None else options.imex_required,
    )
    merged = replace(config, flags=flags, imex=imex)
    return Settings(
        config=merged,
        mig_strategy=strategy,
        list_strategies=frozenset(flags.plugin.device_list_strategy or (ListStrategy.ENVVAR,)),
    )


def read_response_options(settings: Settings, files: HostFiles) -> ResponseOptions:
    """How containers are answered under these settings on this host."""
    flags, plugin = settings.config.flags, settings.config.flags.plugin
    root = find_root(files, plugin.container_driver_root, flags.nvidia_driver_root)
    features = {"gdrcopy": flags.gdrcopy_enabled, "gds": flags.gds_enabled, "mofed": flags.mofed_enabled}
    options = ResponseOptions(
        list_strategies=settings.list_strategies,
        pass_device_specs=bool(plugin.pass_device_specs),
        control_devices=read_control_devices(files, root.seen),
        dev_root=find_device_root(files, root, flags.nvidia_dev_root).on_host,
        mps_root=flags.mps_root or "",
        imex_channels=read_imex_channels(files, root.seen, settings.config.imex.channel_ids),
        features=frozenset(name for name, enabled in features.items() if enabled),
    )
    if plugin.device_id_strategy is not None:
        options = replace(options, id_strategy=plugin.device_id_strategy)
    if plugin.cdi_annotation_prefix is not None:
        options = replace(options, cdi_annotation_prefix=plugin.cdi_annotation_prefix)
    return options


def find_missing_channels(settings: Settings, responses: ResponseOptions) -> tuple[Problem, ...]:
    """IMEX channels that containers should get and this host does not have; whether that matters is `imex.required`."""
    missing = [number for number in settings.config.imex.channel_ids if number not in responses.imex_channels]
    if not missing:
        return ()
    listed = ", ".join(map(str, missing))
    message = f"channel {listed} has no device node on this host, so containers do not get it"
    if settings.config.imex.required:
        message = f"channel {listed} is required and has no device node on this host; create it, or set imex.required to false"
    return (Problem(path="imex.channelIDs", message=message),)


def _over(first: F, second: F) -> F:
    """`first` where it says something, else `second`; nested flags are the caller's."""
    said = {field.name: getattr(first, field.name) for field in fields(first) if field.name not in {"plugin", "gfd"}}
    return replace(second, **{name: value for name, value in said.items() if value is not None})


def _strategy_of(text: str) -> MigStrategy | None:
    return MigStrategy(text) if text in set(MigStrategy) else None
