"""GPUs and their MIG instances, as discovery found them on one node at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from gpushare.domain.links import Link
from gpushare.errors import Problem


class MigStrategy(StrEnum):
    """How MIG instances become resources: not at all, as `nvidia.com/gpu`, or one resource a profile."""

    NONE = "none"
    SINGLE = "single"
    MIXED = "mixed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Whether a device may be given out."""

    healthy: bool = True
    reason: str = ""
    """Empty while healthy; else a word and detail for people, such as `XID 79`."""
    since: str = ""
    """RFC 3339 time of the last change; empty when it never changed."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ComputeCapability:
    """CUDA compute capability, `7.5` for a T4."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads the form of `str`; what is missing is 0."""
        major, _, minor = text.partition(".")
        return cls(major=int(major or 0), minor=int(minor or 0))

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MigEngines:
    """Engines of one MIG instance, by count."""

    copy: int = 0
    decoder: int = 0
    encoder: int = 0
    jpeg: int = 0
    ofa: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MigInstance:
    """One MIG device: a compute instance inside a GPU instance."""

    index: int
    """Position on its GPU as NVML counts it; the device is `<gpu index>:<index>`."""
    uuid: str
    profile: str
    """As nvidia-smi writes it: `1g.5gb`, `1c.3g.20gb`, `1g.5gb+me`."""
    gpu_instance: int
    compute_instance: int
    memory_mib: int = 0
    multiprocessors: int = 0
    gpu_slices: int = 0
    compute_slices: int = 0
    engines: MigEngines = MigEngines()
    paths: tuple[str, ...] = ()
    """Device nodes that a container needs, the parent's first."""
    health: Health = Health()


@dataclass(frozen=True, slots=True, kw_only=True)
class GPU:
    """One physical GPU."""

    index: int
    """NVML's; not renumbered when GPUs are skipped."""
    uuid: str
    product: str
    minor: int = 0
    """Number of its device node `/dev/nvidia<minor>`."""
    memory_mib: int = 0
    """0 when the driver does not tell."""
    compute_capability: ComputeCapability = ComputeCapability(major=0, minor=0)
    bus_id: str = ""
    """Lower case with a four-digit domain, as sysfs names it: `0000:3b:00.0`."""
    numa_node: int | None = None
    pci_class: int | None = None
    """`0x030200` for a compute card, `0x030000` for one that drives displays."""
    fabric_clique: str | None = None
    """`<cluster uuid>.<clique id>` where the GPU is attached to an NVLink fabric."""
    mig_capable: bool = False
    mig_enabled: bool = False
    mig: tuple[MigInstance, ...] = ()
    paths: tuple[str, ...] = ()
    health: Health = Health()


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """All that NVML and the host told about a node's GPUs."""

    gpus: tuple[GPU, ...] = ()
    """In order of index."""
    driver_version: str = ""
    cuda_version: tuple[int, int] | None = None
    """The newest CUDA that the driver supports, (12, 4)."""
    problems: tuple[Problem, ...] = ()
    """What could not be read, device by device."""
    links: tuple[Link, ...] = ()
    """What connects each two of them; empty where nobody asked."""
    link_problems: tuple[Problem, ...] = ()
    """What is odd about the links, or could not be read of them. The devices themselves are none the worse for it."""
