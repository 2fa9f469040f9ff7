"""Names of MIG profiles. Used where the library tells figures only."""

from __future__ import annotations

import math
from typing import Final

_PARTS: Final = 8
"""MIG cuts memory into eighths."""
_MIB_PER_GIB: Final = 1024


def profile_name(*, gpu_slices: int, compute_slices: int, memory_mib: int, gpu_memory_mib: int) -> str:
    """The name that nvidia-smi shows: `1g.5gb`, `1c.3g.20gb`; without an attribute such as `+me`.

    The figure before `gb` is the share of the GPU's memory in whole eighths of its size in whole GiB.

    Args:
        gpu_slices: slices of the GPU instance
        compute_slices: slices of the compute instance inside it
        memory_mib: memory of the instance
        gpu_memory_mib: memory of the whole GPU
    """
    share = math.ceil(memory_mib / gpu_memory_mib * _PARTS) / _PARTS if gpu_memory_mib else 0
    gigabytes = math.floor(share * math.ceil(gpu_memory_mib / _MIB_PER_GIB) + 0.5)
    compute = f"{compute_slices}c." if compute_slices != gpu_slices else ""
    return f"{compute}{gpu_slices}g.{gigabytes}gb"
