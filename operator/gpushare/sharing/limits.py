"""How a container is told and held to its part of a GPU: environment and mounts beside those of `responses`.

Names and shapes are those of HAMi's device plugin and its library, of Alibaba's GPU sharing, and of CUDA MPS. Called by the
agent for each Allocate of a fraction; which limits those are has been decided by the scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gpushare.domain.fractions import Dialect, FractionMode, Grant, Isolation
from gpushare.sharing.responses import ContainerAnswer, Mount

LIBRARY: Final = "/usr/local/vgpu/libvgpu.so"
"""Where HAMi's library expects to lie in a container; it knows no other place."""
_FOLDER: Final = "/usr/local/vgpu"
_PRELOAD: Final = "/etc/ld.so.preload"
_LOCKS: Final = "/tmp/vgpulock"  # noqa: S108 - in the container
_ALL_CORES: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What a container may use of one GPU."""

    grant: Grant
    gpu_index: int
    memory_mib: int
    """All that the GPU has."""
    units: int = 0
    """Units of memory that it is offered in; 0 in the dialect of HAMi."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left that the container would have to be kept from."""
        return self.grant.memory_mib >= self.memory_mib and self.grant.cores in (0, _ALL_CORES)


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryPaths:
    """Where the host has what HAMi's library needs; paths of the host."""

    library: str
    """One version of it, which is never written again."""
    preload: str
    """The file that makes the loader take it."""
    scratch: str
    """A directory for this container alone."""
    locks: str
    """One directory for all containers of the node: they find out one after the other which process is theirs."""


def grants_of(mode: FractionMode, decided: Sequence[Grant], counts: Mapping[str, int]) -> tuple[Grant, ...]:
    """What a container has got, where the kubelet chose its ids: so many of each GPU, by UUID.

    On a GPU that was decided on, what was decided; on another one, what was decided for one that the kubelet left out.
    """
    planned = {grant.uuid: grant for grant in decided}
    spare = [grant for grant in decided if grant.uuid not in counts]
    found = []
    for uuid, count in counts.items():
        grant = planned.get(uuid) or (spare.pop(0) if spare else decided[0])
        if mode.dialect is Dialect.ALIYUN:
            grant = replace(grant, memory_mib=count * mode.unit_mib, units=count)
        found.append(replace(grant, uuid=uuid))
    return tuple(found)


def build_limits(
    mode: FractionMode, parts: Sequence[Part], pod_units: int, paths: LibraryPaths | None
) -> ContainerAnswer:
    """What is added to the answer for one container.

    Args:
        mode: of the node.
        parts: of each of its GPUs.
        pod_units: units of memory of all containers of the pod.
        paths: of HAMi's library; None where that does not isolate.
    """
    # CUDA counts the GPUs of a container in the order of their buses, which is that of NVML.
    ordered = sorted(parts, key=lambda part: part.gpu_index)
    envs = _aliyun(mode, ordered, pod_units) if mode.dialect is Dialect.ALIYUN else {}
    if mode.isolation is Isolation.MPS:
        envs |= _mps(ordered)
    told = mode.dialect is Dialect.HAMI and mode.isolation is not Isolation.EXCLUSIVE
    if told or mode.isolation is Isolation.HAMI_CORE:
        envs |= _hami(mode, ordered)
    if paths is None or all(part.is_whole for part in ordered):
        # A library that has nothing to limit can only do harm.
        return ContainerAnswer(envs=envs)
    cache = {"CUDA_DEVICE_MEMORY_SHARED_CACHE": f"{_FOLDER}/usage.cache"}
    return ContainerAnswer(envs=envs | cache, mounts=_mounts(paths))


def _hami(mode: FractionMode, parts: Sequence[Part]) -> dict[str, str]:
    envs = {f"CUDA_DEVICE_MEMORY_LIMIT_{place}": f"{part.grant.memory_mib}m" for place, part in enumerate(parts)}
    envs |= {f"CUDA_DEVICE_SM_LIMIT_{place}": str(part.grant.cores) for place, part in enumerate(parts)}
    # Of the first GPU, for versions of the library that know of no other.
    envs["CUDA_DEVICE_SM_LIMIT"] = str(parts[0].grant.cores)
    if mode.memory_scaling > 1:
        envs["CUDA_OVERSUBSCRIBE"] = "true"
    return envs


def _aliyun(mode: FractionMode, parts: Sequence[Part], pod_units: int) -> dict[str, str]:
    envs = {
        "ALIYUN_COM_GPU_MEM_IDX": ",".join(str(part.gpu_index) for part in parts),
        "ALIYUN_COM_GPU_MEM_POD": str(pod_units),
        "ALIYUN_COM_GPU_MEM_CONTAINER": str(sum(part.grant.units for part in parts)),
        "ALIYUN_COM_GPU_MEM_DEV": str(parts[0].units),
    }
    return envs | ({"CGPU_DISABLE": "true"} if mode.isolation is Isolation.NONE else {})


def _mps(parts: Sequence[Part]) -> dict[str, str]:
    limits = ",".join(f"{place}={part.grant.memory_mib}M" for place, part in enumerate(parts))
    envs = {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": limits}
    # One figure for all GPUs of a client: the least keeps every promise to its neighbours.
    cores = [part.grant.cores for part in parts if part.grant.cores]
    return envs | ({"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(min(*cores, _ALL_CORES))} if cores else {})


def _mounts(paths: LibraryPaths) -> tuple[Mount, ...]:
    # The directory before the file in it.
    return (
        Mount(_FOLDER, paths.scratch),
        Mount(LIBRARY, paths.library, read_only=True),
        Mount(_LOCKS, paths.locks),
        Mount(_PRELOAD, paths.preload, read_only=True),
    )
