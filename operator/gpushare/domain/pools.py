"""Resource pools: what one plugin server offers to the kubelet under one resource name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gpushare.domain.fractions import FractionMode
from gpushare.domain.shares import ShareId


class Strategy(StrEnum):
    """How the devices of a pool are shared; the values are those of the label `gpu.sharing-strategy`."""

    NONE = "none"
    TIME_SLICING = "time-slicing"
    MPS = "mps"


class Allocation(StrEnum):
    """Which shares a request gets when the kubelet asks for a preference."""

    DISTRIBUTED = "distributed"
    PACKED = "packed"
    DISTINCT = "distinct"


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One device of the kubelet: a whole GPU or MIG instance, or the n-th share of one."""

    id: ShareId
    gpu_index: int
    """The physical GPU, by NVML's index."""
    mig_index: int | None = None
    """Position of the MIG instance on that GPU; None for a whole GPU."""
    healthy: bool = True
    numa_node: int | None = None
    paths: tuple[str, ...] = ()
    """Device nodes of the device behind it."""

    @property
    def device_index(self) -> str:
        """NVML's index as text: `2`, or `2:1` for a MIG instance."""
        return str(self.gpu_index) if self.mig_index is None else f"{self.gpu_index}:{self.mig_index}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Everything offered under one resource name, at one moment."""

    resource: str
    """Full name, `nvidia.com/gpu.shared`."""
    base: str
    """The name before a rename, `nvidia.com/gpu`; labels are keyed by it."""
    strategy: Strategy = Strategy.NONE
    replicas: int = 1
    """Shares a device; 1 means not shared."""
    shares: tuple[Share, ...] = ()
    """In order of GPU, MIG instance, share number. Empty: the resource is shown as 0."""
    fail_requests_greater_than_one: bool = False
    allocation: Allocation = Allocation.DISTRIBUTED
    fractions: FractionMode | None = None
    """How parts of GPUs are given out, where the shares stand for such."""
    by_id: Mapping[str, Share] = field(init=False, repr=False, compare=False)
    """The shares by the text of their id, made once, since every Allocate asks for it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_id", {str(share.id): share for share in self.shares})

    @property
    def renamed(self) -> bool:
        """Whether the resource carries another name than its devices."""
        return self.resource != self.base

    @property
    def healthy(self) -> int:
        """Shares that may be given out."""
        return sum(share.healthy for share in self.shares)
