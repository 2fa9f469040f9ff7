"""A described node's driver, simulated or true: what is proved with the one is proved with the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from gpushare.nvml.port import Nvml
from gpushare.nvml.real import RealNvml
from support.described_nodes import build_nvml
from support.nvml_library import plugged_in, write_stub


class DriverKind(StrEnum):
    """Which one."""

    SIMULATED = "simulated"
    REAL = "real"


@contextmanager
def driver_of(kind: DriverKind, node: str, folder: Path) -> Iterator[Nvml]:
    """The driver of the node; a true one has its files in the folder, and this process for itself."""
    if kind is DriverKind.SIMULATED:
        yield build_nvml(node)
        return
    with plugged_in(write_stub(folder, node)):
        yield RealNvml()
