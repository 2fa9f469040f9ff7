"""What an administrator decides about all requests: names of resources, defaults. From the scheduler's settings file."""

from __future__ import annotations

from dataclasses import dataclass

from gpushare import names
from gpushare.domain.fractions import Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSettings:
    """How requests are read. A resource whose name is empty cannot be asked for."""

    count: str = names.RESOURCE_GPU
    memory: str = names.RESOURCE_GPUMEM
    memory_percentage: str = names.RESOURCE_GPUMEM_PERCENTAGE
    cores: str = names.RESOURCE_GPUCORES
    priority: str = names.RESOURCE_PRIORITY
    aliyun_memory: str = names.RESOURCE_ALIYUN_MEM
    aliyun_cores: str = names.RESOURCE_ALIYUN_CORE
    memory_factor: int = 1
    """MiB of one `nvidia.com/gpumem`, also in quotas."""
    default_memory: int = 0
    """MiB for containers that ask for a GPU but for no memory; 0: all of it."""
    default_cores: int = 0
    """Percent of compute for those that ask for memory only; 0: no limit."""
    default_count: int = 1
    """GPUs for those that ask for memory or compute only; 0: they have to say how many."""
    claim_plain_gpu: bool = False
    """Whether pods that ask for nothing but `nvidia.com/gpu` are placed too, as HAMi does."""
    node_policy: Placement = Placement.BINPACK
    """For pods that do not say."""
