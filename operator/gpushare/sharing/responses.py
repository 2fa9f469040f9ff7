"""What a container is given for the share ids that it was allotted. Called by the plugin server for each Allocate.

One function a way of telling: environment, mounts, CDI, device nodes, MPS. Shapes and words are those of NVIDIA's device plugin.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from gpushare.api.sharing import IdStrategy, ListStrategy
from gpushare.domain.pools import Allocation, Pool, Share, Strategy
from gpushare.errors import GpuShareError

VISIBLE_DEVICES: Final = "NVIDIA_VISIBLE_DEVICES"
VOLUME_MOUNTS_ROOT: Final = "/var/run/nvidia-container-devices"
CDI_VENDOR: Final = "k8s.device-plugin.nvidia.com"
_CDI_STRATEGIES: Final = frozenset({ListStrategy.CDI_ANNOTATIONS, ListStrategy.CDI_CRI})
_FEATURES: Final = ("gdrcopy", "gds", "mofed")


class RequestRefused(GpuShareError):  # noqa: N818 - what happened, in the words of the protocol
    """An Allocate that cannot be granted; the text reaches the pod's owner through the kubelet."""

    def __init__(self, text: str, *, reason: str = "Invalid") -> None:
        """`reason`: one word for metrics."""
        super().__init__(text)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or directory of the host in the container."""

    container_path: str
    host_path: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class DeviceNode:
    """A device node of the host in the container."""

    container_path: str
    host_path: str
    permissions: str = "rw"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerAnswer:
    """Everything that one container gets."""

    envs: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    devices: tuple[DeviceNode, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    cdi_devices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseOptions:
    """How containers of this node are told; made once from flags and what the host has."""

    list_strategies: frozenset[ListStrategy] = frozenset({ListStrategy.ENVVAR})
    id_strategy: IdStrategy = IdStrategy.UUID
    pass_device_specs: bool = False
    control_devices: tuple[str, ...] = ()
    """`/dev/nvidiactl` and its like, as far as the host has them."""
    dev_root: str = "/"
    """Where the host has its device nodes."""
    mps_root: str = ""
    cdi_annotation_prefix: str = "cdi.k8s.io/"
    imex_channels: tuple[int, ...] = ()
    features: frozenset[str] = frozenset()
    """Of `gdrcopy`, `gds`, `mofed`."""
    cdi_features: frozenset[str] = frozenset()
    """Those of them that have a CDI device."""

    @property
    def uses_cdi(self) -> bool:
        """Whether CDI names devices, be it alone or beside others."""
        return not self.list_strategies.isdisjoint(_CDI_STRATEGIES)

    @property
    def cdi_only(self) -> bool:
        """Whether nothing but CDI names devices; then none is named in the environment."""
        return self.list_strategies <= _CDI_STRATEGIES


def build_response(pool: Pool, ids: Sequence[str], options: ResponseOptions) -> ContainerAnswer:
    """The answer for one container.

    Raises:
        RequestRefused: an id that the pool does not have, or more than its configuration lets one container have.
    """
    shares = _shares_of(pool, ids)
    names = _names_of(shares, options.id_strategy)
    # NVIDIA_VISIBLE_DEVICES of the mounts beats that of the environment where both are on.
    parts = (
        _cdi(pool, ids, names, options),
        _mps(pool, shares, options),
        _features(options),
        *(() if options.cdi_only else (_envvar(names, options), _volume_mounts(names, options))),
        *((_device_nodes(shares, options),) if options.pass_device_specs and not options.cdi_only else ()),
    )
    return ContainerAnswer(
        envs={name: value for part in parts for name, value in part.envs.items()},
        mounts=tuple(mount for part in parts for mount in part.mounts),
        devices=tuple(device for part in parts for device in part.devices),
        annotations={name: value for part in parts for name, value in part.annotations.items()},
        cdi_devices=tuple(name for part in parts for name in part.cdi_devices),
    )


def _shares_of(pool: Pool, ids: Sequence[str]) -> list[Share]:
    prefix = f'invalid allocation request for "{pool.resource}": '
    unknown = next((share_id for share_id in ids if share_id not in pool.by_id), None)
    if unknown is not None:
        raise RequestRefused(f"{prefix}unknown device: {unknown}")
    shares = [pool.by_id[share_id] for share_id in ids]
    any_shared = any(share.id.number is not None for share in shares)
    if pool.fail_requests_greater_than_one and any_shared and len(ids) > 1:
        reason = f"invalid request: maximum request size for shared resources is 1; found {len(ids)}"
        raise RequestRefused(prefix + reason)
    if pool.allocation is Allocation.DISTINCT and len({share.id.device for share in shares}) < len(shares):
        raise RequestRefused(f"{prefix}invalid request: {_why_not_distinct(pool, len(ids))}")
    return shares


def _why_not_distinct(pool: Pool, size: int) -> str:
    devices = len({share.id.device for share in pool.shares})
    wish = f"{size} shares must be of different devices"
    if size > devices:
        return f"{wish}, but this node has {devices}; ask for {devices} at most"
    return f"{wish}, and fewer than {size} of {devices} have a free one"


def _names_of(shares: Sequence[Share], strategy: IdStrategy) -> tuple[str, ...]:
    """Devices, not shares, each once, in the order of the request."""
    if strategy is IdStrategy.INDEX:
        return tuple(dict.fromkeys(share.device_index for share in shares))
    return tuple(dict.fromkeys(share.id.device for share in shares))


def _envvar(names: Sequence[str], options: ResponseOptions) -> ContainerAnswer:
    if ListStrategy.ENVVAR not in options.list_strategies:
        return ContainerAnswer()
    envs = {VISIBLE_DEVICES: ",".join(names)}
    if options.imex_channels:
        envs["NVIDIA_IMEX_CHANNELS"] = ",".join(map(str, options.imex_channels))
    return ContainerAnswer(envs=envs)


def _volume_mounts(names: Sequence[str], options: ResponseOptions) -> ContainerAnswer:
    if ListStrategy.VOLUME_MOUNTS not in options.list_strategies:
        return ContainerAnswer()
    channels = [f"imex/{channel}" for channel in options.imex_channels]
    mounts = tuple(Mount(f"{VOLUME_MOUNTS_ROOT}/{name}", "/dev/null") for name in (*names, *channels))
    return ContainerAnswer(envs={VISIBLE_DEVICES: VOLUME_MOUNTS_ROOT}, mounts=mounts)


def _cdi(pool: Pool, ids: Sequence[str], names: Sequence[str], options: ResponseOptions) -> ContainerAnswer:
    qualified = [f"{CDI_VENDOR}/gpu={name}" for name in names]
    qualified += [f"{CDI_VENDOR}/imex-channel={channel}" for channel in options.imex_channels]
    qualified += [f"{CDI_VENDOR}/{feature}=all" for feature in _FEATURES if feature in options.cdi_features]
    if not qualified:
        return ContainerAnswer()
    annotations: dict[str, str] = {}
    if ListStrategy.CDI_ANNOTATIONS in options.list_strategies:
        import uuid  # late: it asks the machine many things that nobody wants to know

        # One key a request: a container with two GPU resources gets both. Not random, so that the same asks the same.
        digest = hashlib.sha256("\n".join((pool.resource, *ids)).encode()).digest()
        key = f"{options.cdi_annotation_prefix}nvidia-device-plugin_{uuid.UUID(bytes=digest[:16], version=4)}"
        annotations[key] = ",".join(qualified)
    cri = tuple(qualified) if ListStrategy.CDI_CRI in options.list_strategies else ()
    return ContainerAnswer(annotations=annotations, cdi_devices=cri)


def _mps(pool: Pool, shares: Sequence[Share], options: ResponseOptions) -> ContainerAnswer:
    is_shared = any(share.id.number is not None for share in shares) or not shares
    if pool.strategy is not Strategy.MPS or not is_shared:
        return ContainerAnswer()
    root = options.mps_root.rstrip("/")
    pipe = f"/mps/{pool.resource}/pipe"
    mounts = (Mount(pipe, f"{root}/{pool.resource}/pipe"), Mount("/dev/shm", f"{root}/shm"))  # noqa: S108 - in the container
    return ContainerAnswer(envs={"CUDA_MPS_PIPE_DIRECTORY": pipe}, mounts=mounts)


def _features(options: ResponseOptions) -> ContainerAnswer:
    return ContainerAnswer(
        envs={f"NVIDIA_{feature.upper()}": "enabled" for feature in _FEATURES if feature in options.features}
    )


def _device_nodes(shares: Sequence[Share], options: ResponseOptions) -> ContainerAnswer:
    channels = [f"/dev/nvidia-caps-imex-channels/channel{channel}" for channel in options.imex_channels]
    own = [path for share in shares for path in share.paths]
    paths = dict.fromkeys((*options.control_devices, *own, *channels))
    root = options.dev_root.rstrip("/")
    return ContainerAnswer(devices=tuple(DeviceNode(path, f"{root}{path}") for path in paths))
