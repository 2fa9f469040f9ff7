"""What connects the GPUs of one node with each other, pair by pair. Read by `nvml`, weighed by `allocation`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final


class Ancestor(IntEnum):
    """The nearest thing that two GPUs hang on, by NVML's numbers: the smaller, the closer."""

    BOARD = 0
    SWITCH = 10
    SWITCHES = 20
    HOST_BRIDGE = 30
    NUMA_NODE = 40
    SYSTEM = 50


WORDS: Final[Mapping[Ancestor, str]] = {
    Ancestor.BOARD: "BRD",
    Ancestor.SWITCH: "PIX",
    Ancestor.SWITCHES: "PXB",
    Ancestor.HOST_BRIDGE: "PHB",
    Ancestor.NUMA_NODE: "NODE",
    Ancestor.SYSTEM: "SYS",
}
"""As nvidia-smi shows them, which has no word of its own for one board."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Everything between two GPUs."""

    gpus: tuple[int, int]
    """Their indices, the lower one first."""
    ancestor: Ancestor | None = None
    """None: the driver does not tell."""
    nvlinks: int = 0
    """NVLinks from one straight to the other; where the two ends count differently, the lesser number."""
    switched: int = 0
    """NVLinks that reach the other through NVSwitches: the lesser number of the two GPUs. A node has one such fabric."""
