"""A sharing configuration as it is once it has been read and found valid. Made by `parsing`, used by the agent and the plan.

Plain values, apart from the models of the text: an agent that starts from what it knows does not load pydantic.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gpushare.domain.devices import MigStrategy
from gpushare.domain.fractions import FractionMode
from gpushare.domain.pools import Allocation, Strategy

MAX_RESOURCE_NAME: Final = 63
"""Characters that Kubernetes takes, the prefix included."""


class ListStrategy(StrEnum):
    """How a container is told which devices it has."""

    ENVVAR = "envvar"
    VOLUME_MOUNTS = "volume-mounts"
    CDI_ANNOTATIONS = "cdi-annotations"
    CDI_CRI = "cdi-cri"


class IdStrategy(StrEnum):
    """What devices are called towards the container runtime."""

    UUID = "uuid"
    INDEX = "index"


class OnShrink(StrEnum):
    """What happens when a new configuration offers less than is in use."""

    KEEP = "keep"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSelection:
    """Which devices of a resource an entry is about. With neither field set: all of them."""

    count: int | None = None
    """So many, the lowest indices first."""
    refs: tuple[str, ...] = ()
    """Index (`2`), index of a MIG instance (`0:1`), or UUID."""

    @property
    def is_all(self) -> bool:
        """Whether nothing was selected."""
        return self.count is None and not self.refs


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedResource:
    """One entry of `sharing.timeSlicing.resources` or `sharing.mps.resources`."""

    path: str
    """Where it stands in the text, for messages: `sharing.mps.resources[0]`."""
    name: str
    """Full name, `nvidia.com/gpu`."""
    replicas: int
    """1 means not shared."""
    offered_as: str
    """Full name under which the shares are offered; `name` where nothing is renamed."""
    devices: DeviceSelection = DeviceSelection()


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginFlags:
    """`flags.plugin`. None: not set, a flag's own default holds."""

    pass_device_specs: bool | None = None
    device_list_strategy: tuple[ListStrategy, ...] | None = None
    device_id_strategy: IdStrategy | None = None
    cdi_annotation_prefix: str | None = None
    nvidia_ctk_path: str | None = None
    container_driver_root: str | None = None
    shared_devices_allocation_policy: Allocation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryFlags:
    """`flags.gfd`. None: not set."""

    oneshot: bool | None = None
    no_timestamp: bool | None = None
    sleep_interval: float | None = None
    """Seconds; infinity for `infinite`."""
    output_file: str | None = None
    machine_type_file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """`flags`: what the command line and the environment can set too, and beat. None: not set."""

    mig_strategy: MigStrategy | None = None
    fail_on_init_error: bool | None = None
    mps_root: str | None = None
    nvidia_driver_root: str | None = None
    nvidia_dev_root: str | None = None
    gdrcopy_enabled: bool | None = None
    gds_enabled: bool | None = None
    mofed_enabled: bool | None = None
    use_node_feature_api: bool | None = None
    device_discovery_strategy: str | None = None
    plugin: PluginFlags = PluginFlags()
    gfd: DiscoveryFlags = DiscoveryFlags()


@dataclass(frozen=True, slots=True, kw_only=True)
class Imex:
    """`imex`: channels that every container gets."""

    channel_ids: tuple[int, ...] = ()
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """The `gpushare` block: what NVIDIA's plugin does not know."""

    on_shrink: OnShrink = OnShrink.KEEP
    allocation: Allocation | None = None
    """None: what `flags.plugin.sharedDevicesAllocationPolicy` says."""
    fractions: FractionMode | None = None
    """None: pods get whole GPUs or equal shares."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharingConfig:
    """One valid configuration, whole. The default is what an empty text means: nothing is shared."""

    strategy: Strategy = Strategy.NONE
    """NONE where no entry has more than one replica."""
    resources: tuple[SharedResource, ...] = ()
    """Entries in the order of the text, those with one replica too."""
    fail_requests_greater_than_one: bool = False
    flags: Flags = Flags()
    imex: Imex = Imex()
    extension: Extension = Extension()

    @property
    def allocation(self) -> Allocation:
        """Which shares a request gets: the extension block before the flag."""
        return self.extension.allocation or self.flags.plugin.shared_devices_allocation_policy or Allocation.DISTRIBUTED
