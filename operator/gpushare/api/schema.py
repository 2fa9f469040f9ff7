"""The text form of a sharing configuration: every key, its type and its limits. Used by `parsing`.

Keys, types and limits are those of NVIDIA's device plugin (`version: v1`); the block `gpushare` is ours.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from gpushare import names
from gpushare.api.durations import read_duration
from gpushare.api.sharing import MAX_RESOURCE_NAME, DeviceSelection, IdStrategy, ListStrategy, OnShrink
from gpushare.domain.devices import MigStrategy
from gpushare.domain.fractions import DEFAULT_SLOTS, Isolation, Placement
from gpushare.domain.pools import Allocation

OWN_ERROR: Final = "gpushare"
"""Type of the errors whose message is already written for people."""
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_HEX: Final = r"[0-9a-fA-F]"
_UUID: Final = rf"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"
_REF: Final = re.compile(rf"\d+|\d+:\d+|GPU-{_UUID}|MIG-{_UUID}|MIG-GPU-{_UUID}/\d+/\d+", re.ASCII)


MAX_SCALING: Final = 100
"""Times that memory or compute is given out at most; more is a typing error."""


def refusal(message: str) -> PydanticCustomError:
    """An error whose message goes to people as it is. Braces are not templates."""
    return PydanticCustomError(OWN_ERROR, "{text}", {"text": message})


def _integer(value: Any) -> Any:
    # 4.0 and 1e1 are the integers 4 and 10 to the JSON that NVIDIA's plugin makes of the text.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _resource_name(value: str) -> str:
    full = value if value.startswith(names.PREFIX) else names.PREFIX + value
    rest = full.removeprefix(names.PREFIX)
    if "/" in rest:
        raise refusal(f'"{value}" is not a resource of {names.GROUP_NVIDIA}; names look like {names.RESOURCE_GPU}')
    if "+" in rest:
        raise refusal(f'a resource name has "." where the MIG profile has "+"; write "{full.replace("+", ".")}"')
    if not _SUBDOMAIN.fullmatch(rest):
        raise refusal(f'"{value}" is not a resource name; use lower-case letters, digits, "-" and "."')
    if len(full) > MAX_RESOURCE_NAME:
        raise refusal(f'"{full}" has {len(full)} characters; Kubernetes takes {MAX_RESOURCE_NAME}')
    return full


def _replicas(value: int) -> int:
    if value < 1:
        raise refusal(f"{value} shares make no sense; write 2 or more, or 1 for not shared")
    return value


def _device_selection(value: Any) -> DeviceSelection:
    if isinstance(value, str) and value == "all":
        return DeviceSelection()
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return DeviceSelection(count=value)
    if isinstance(value, list) and value:
        return DeviceSelection(refs=tuple(map(_device_ref, value)))
    raise refusal('write "all", a number of devices above 0, or a list of indices and UUIDs')


def _device_ref(value: Any) -> str:
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not (isinstance(text, str) and _REF.fullmatch(text)):
        shown = f'"{value}"' if isinstance(value, str | int | float) else "an item"
        raise refusal(f"{shown} names no device; write an index (0), a MIG index (0:1) or a UUID (GPU-..., MIG-...)")
    return str(int(text)) if text.isdecimal() else text


def _list_strategies(value: Any) -> Any:
    if isinstance(value, str) and "," in value:
        parts = ", ".join(part.strip() for part in value.split(","))
        raise refusal(f"several strategies are a list in a file; write [{parts}]")
    if value == []:
        raise refusal("an empty list would start containers without any GPU; name a strategy, such as envvar")
    return [value] if isinstance(value, str) else value


def _sleep_interval(value: Any) -> float | None:
    try:
        return None if value is None else read_duration(value)
    except ValueError as error:
        raise refusal(str(error)) from None


def _version(value: Any) -> str:
    if value in (None, "", "v1"):
        return "v1"
    raise refusal(f'"{value}" is not known; write v1' if isinstance(value, str | int | float) else "write v1")


def _channels(value: list[int]) -> list[int]:
    if value not in ([], [0]):
        raise refusal("only channel 0 can be asked for; write [0] or []")
    return value


def _not_null(value: Any) -> Any:
    if value is None:
        raise refusal("is empty; name resources in it, or remove it")
    return value


Integer = Annotated[int, BeforeValidator(_integer)]
ResourceName = Annotated[str, AfterValidator(_resource_name)]


WORD: Final = Field(strict=False)
"""Takes the text of an enumeration's member for the member."""


class Block(BaseModel):
    """What all blocks have in common: unknown keys are errors, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, alias_generator=to_camel)


class Entry(Block):
    """One resource and how many shares each of its devices has."""

    name: ResourceName
    replicas: Annotated[Integer, AfterValidator(_replicas)]
    rename: ResourceName | None = None
    devices: Annotated[Any, BeforeValidator(_device_selection)] = DeviceSelection()


class Replicated(Block):
    """`sharing.timeSlicing` and `sharing.mps`."""

    rename_by_default: bool | None = None
    fail_requests_greater_than_one: bool | None = None
    resources: Annotated[list[Entry], Field(min_length=1)]


class Sharing(Block):
    """`sharing`."""

    time_slicing: Annotated[Replicated | None, BeforeValidator(_not_null)] = None
    mps: Replicated | None = None


class PluginBlock(Block):
    """`flags.plugin`."""

    pass_device_specs: bool | None = None
    device_list_strategy: Annotated[list[Annotated[ListStrategy, WORD]] | None, BeforeValidator(_list_strategies)] = (
        None
    )
    device_id_strategy: Annotated[IdStrategy, WORD] | None = Field(None, alias="deviceIDStrategy")
    cdi_annotation_prefix: str | None = None
    nvidia_ctk_path: str | None = Field(None, alias="nvidiaCTKPath")
    container_driver_root: str | None = None
    shared_devices_allocation_policy: Literal["distributed", "packed"] | None = None


class DiscoveryBlock(Block):
    """`flags.gfd`."""

    oneshot: bool | None = None
    no_timestamp: bool | None = None
    sleep_interval: Annotated[float | None, BeforeValidator(_sleep_interval)] = None
    output_file: str | None = None
    machine_type_file: str | None = None


class FlagsBlock(Block):
    """`flags`."""

    mig_strategy: Annotated[MigStrategy, WORD] | None = None
    fail_on_init_error: bool | None = None
    mps_root: str | None = None
    nvidia_driver_root: str | None = None
    nvidia_dev_root: str | None = None
    gdrcopy_enabled: bool | None = None
    gds_enabled: bool | None = None
    mofed_enabled: bool | None = None
    use_node_feature_api: bool | None = Field(None, alias="useNodeFeatureAPI")
    device_discovery_strategy: Literal["auto", "nvml"] | None = None
    plugin: PluginBlock | None = None
    gfd: DiscoveryBlock | None = None


class Pattern(Block):
    """One entry of `resources.gpus` or `resources.mig`."""

    pattern: str
    name: ResourceName


class ResourcesBlock(Block):
    """`resources`: read, and then not used, as by NVIDIA's plugin."""

    gpus: list[Pattern] | None = None
    mig: list[Pattern] | None = None


class ImexBlock(Block):
    """`imex`."""

    channel_ids: Annotated[list[Integer] | None, AfterValidator(lambda v: _channels(v or []))] = Field(
        None, alias="channelIDs"
    )
    required: bool | None = None


class ExtensionBlock(Block):
    """`gpushare`: not known to NVIDIA's plugin, which ignores it."""

    on_shrink: Annotated[OnShrink, WORD] = OnShrink.KEEP
    allocation: Annotated[Allocation, WORD] | None = None
    fractions: Literal["none", "hami", "aliyun"] = "none"
    slots: Annotated[Integer, Field(ge=1)] = DEFAULT_SLOTS
    memory_unit: Literal["GiB", "MiB", "256MiB"] = "GiB"
    placement: Annotated[Placement, WORD] = Placement.BINPACK
    isolation: Annotated[Isolation, WORD] = Isolation.NONE
    compute: bool = True
    memory_scaling: Annotated[float, Field(ge=1, le=MAX_SCALING, allow_inf_nan=False)] = 1.0
    core_scaling: Annotated[float, Field(ge=1, le=MAX_SCALING, allow_inf_nan=False)] = 1.0


class Configuration(Block):
    """The whole text."""

    version: Annotated[str, BeforeValidator(_version)] = "v1"
    flags: FlagsBlock | None = None
    resources: ResourcesBlock | None = None
    sharing: Sharing | None = None
    imex: ImexBlock | None = None
    gpushare: ExtensionBlock | None = None
