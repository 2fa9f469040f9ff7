"""One GPU as the scheduler sees it: what it gives out, and what is taken. Small and shared, as there are tens of thousands."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

from gpushare.allocation import Topology
from gpushare.allocation.topology import Scores
from gpushare.domain.devices import ComputeCapability
from gpushare.domain.fractions import Dialect, FractionMode, Isolation
from gpushare.sharing import capability

_NO_NUMA: Final = -1
_VENDOR: Final = "nvidia"


class Traits(NamedTuple):
    """What one GPU gives out. GPUs with equal traits and equal use are the same to any pod that does not name them."""

    model: str
    """Lower case: product name, with the vendor before it, as HAMi's annotations expect."""
    memory_mib: int
    """With over-commitment, where it is allowed; whole units in the dialect of Aliyun."""
    cores: int
    """Percent; 100 unless compute is over-committed."""
    slots: int
    """Containers at most; 0: any number."""
    numa: int
    """-1: the host does not say."""
    is_healthy: bool
    is_cordoned: bool


class Use(NamedTuple):
    """What is taken of one GPU, by one pod or by all together."""

    memory_mib: int = 0
    cores: int = 0
    slots: int = 0
    """Shares that the kubelet has given out; in the dialect of Aliyun, pods."""
    alone: int = 0
    """How many of them want the GPU for themselves."""
    unlimited: int = 0
    """How many of them have no limit of compute."""

    def plus(self, other: Use) -> Use:
        """Both together."""
        return Use(
            self.memory_mib + other.memory_mib,
            self.cores + other.cores,
            self.slots + other.slots,
            self.alone + other.alone,
            self.unlimited + other.unlimited,
        )

    def minus(self, other: Use) -> Use:
        """What remains without the other."""
        return Use(
            self.memory_mib - other.memory_mib,
            self.cores - other.cores,
            self.slots - other.slots,
            self.alone - other.alone,
            self.unlimited - other.unlimited,
        )


UNUSED: Final = Use()
Holding = Mapping[str, Use]
"""What one pod takes, by UUID of the GPU."""


@dataclass(frozen=True, slots=True)
class GPU:
    """A GPU of one node."""

    uuid: str
    index: int
    """As nvidia-smi counts."""
    traits: Traits


_shared = lru_cache(maxsize=4096)(Traits)
"""The same object for equal traits: a cluster has few models, and each node has several of one."""


def read_gpus(devices: Iterable[Mapping[str, Any]], mode: FractionMode, cordoned: Container[str]) -> tuple[GPU, ...]:
    """What `status.devices` of a GPUNode offers in a mode, by index: as many slots or units as the agent tells the kubelet.

    GPUs in MIG mode take no part, nor do those whose driver does not tell their memory.
    """
    parts = (device for device in devices if not device.get("migEnabled") and device.get("memoryMiB"))
    return tuple(sorted((_read_gpu(device, mode, cordoned) for device in parts), key=lambda gpu: gpu.index))


def read_topology(devices: Sequence[Mapping[str, Any]], gpus: Iterable[GPU]) -> Topology | None:
    """How close some of the devices are to each other, by their positions; None where the agent does not tell."""
    places = {device["uuid"]: place for place, device in enumerate(devices)}
    chosen = [places[gpu.uuid] for gpu in gpus]
    rows = [devices[place].get("closeness", ()) for place in chosen]
    if not rows or any(len(row) <= max(chosen) for row in rows):
        return None
    return _topology_of(tuple(tuple(row[place] for place in chosen) for row in rows))


@lru_cache(maxsize=1024)
def _topology_of(scores: Scores) -> Topology:
    """The same object for equal figures, which all nodes with the same board have."""
    return Topology.from_pair_scores(scores)


def _read_gpu(device: Mapping[str, Any], mode: FractionMode, cordoned: Container[str]) -> GPU:
    product = str(device.get("product", "")).lower()
    memory = int(device["memoryMiB"] * mode.memory_scaling)
    is_hami = mode.dialect is Dialect.HAMI
    traits = _shared(
        model=sys.intern(product if product.startswith(_VENDOR) else f"{_VENDOR}-{product}"),
        memory_mib=memory if is_hami else memory - memory % mode.unit_mib,
        cores=round(100 * mode.core_scaling),
        slots=_slots_of(device, mode),
        numa=device.get("numaNode", _NO_NUMA),
        is_healthy=device["health"]["healthy"],
        is_cordoned=device["uuid"] in cordoned,
    )
    return GPU(device["uuid"], device["index"], traits)


def _slots_of(device: Mapping[str, Any], mode: FractionMode) -> int:
    if mode.dialect is Dialect.HAMI:
        return 1 if mode.isolation is Isolation.EXCLUSIVE else mode.slots
    if mode.isolation is Isolation.MPS:
        return capability.mps_clients(ComputeCapability.parse(device.get("computeCapability", "")))
    return 0
