"""What is in force once command line, policy and configuration text have been weighed against each other.

Precedence as in NVIDIA's device plugin and operator: what was said to this process, then the policy's MIG strategy, then
the text, then the default.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Final, TypeVar

from gpushare.agent.options import AgentOptions
from gpushare.api.sharing import Flags, Imex, ListStrategy, PluginFlags, SharingConfig
from gpushare.domain.devices import MigStrategy
from gpushare.errors import Problem
from gpushare.host.devices import read_control_devices, read_imex_channels
from gpushare.host.files import HostFiles
from gpushare.sharing.responses import ResponseOptions

F = TypeVar("F", Flags, PluginFlags)

CONTAINER_DRIVER_ROOT: Final = "/driver-root"
_SERVED: Final = frozenset({ListStrategy.ENVVAR, ListStrategy.VOLUME_MOUNTS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A configuration with everything decided."""

    config: SharingConfig
    """With the flags of the command line in the place of those of the text."""
    mig_strategy: MigStrategy
    list_strategies: frozenset[ListStrategy]
    problems: tuple[Problem, ...] = ()
    """Why this cannot be served."""
    warnings: tuple[Problem, ...] = ()


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
    # On the command line it is no fault of the text, and no reason to serve nothing: the rest of them serve.
    from_text = said.plugin.device_list_strategy is None
    wanted = frozenset(flags.plugin.device_list_strategy or (ListStrategy.ENVVAR,))
    unserved = tuple(_unserved(wanted, "flags.plugin.deviceListStrategy" if from_text else "--device-list-strategy"))
    return Settings(
        config=merged,
        mig_strategy=strategy,
        list_strategies=(wanted & _SERVED) or frozenset({ListStrategy.ENVVAR}),
        problems=unserved if from_text else (),
        warnings=() if from_text else unserved,
    )


def read_response_options(settings: Settings, files: HostFiles) -> tuple[ResponseOptions, tuple[Problem, ...]]:
    """How containers are answered under these settings on this host, and what of it the host does not have."""
    flags, plugin = settings.config.flags, settings.config.flags.plugin
    driver_root = CONTAINER_DRIVER_ROOT if plugin.container_driver_root is None else plugin.container_driver_root
    channels = read_imex_channels(files, driver_root, settings.config.imex.channel_ids)
    features = {"gdrcopy": flags.gdrcopy_enabled, "gds": flags.gds_enabled, "mofed": flags.mofed_enabled}
    options = ResponseOptions(
        list_strategies=settings.list_strategies,
        pass_device_specs=bool(plugin.pass_device_specs),
        control_devices=read_control_devices(files, driver_root),
        dev_root=flags.nvidia_dev_root or flags.nvidia_driver_root or "/",
        mps_root=flags.mps_root or "",
        imex_channels=channels,
        features=frozenset(name for name, enabled in features.items() if enabled),
    )
    if plugin.device_id_strategy is not None:
        options = replace(options, id_strategy=plugin.device_id_strategy)
    if plugin.cdi_annotation_prefix is not None:
        options = replace(options, cdi_annotation_prefix=plugin.cdi_annotation_prefix)
    if settings.config.imex.required and channels != settings.config.imex.channel_ids:
        message = "a required IMEX channel has no device node on this host; create it, or set imex.required to false"
        return options, (Problem(path="imex.channelIDs", message=message),)
    return options, ()


def _over(first: F, second: F) -> F:
    """`first` where it says something, else `second`; nested flags are the caller's."""
    said = {field.name: getattr(first, field.name) for field in fields(first) if field.name not in {"plugin", "gfd"}}
    return replace(second, **{name: value for name, value in said.items() if value is not None})


def _strategy_of(text: str) -> MigStrategy | None:
    return MigStrategy(text) if text in set(MigStrategy) else None


def _unserved(wanted: frozenset[ListStrategy], path: str) -> Iterator[Problem]:
    for strategy in sorted(wanted - _SERVED):
        message = f'"{strategy}" is not served by this version; use {" or ".join(sorted(_SERVED))}'
        yield Problem(path=path, message=message)
