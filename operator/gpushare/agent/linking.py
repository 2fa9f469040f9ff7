"""Keeps what is known of the links between a node's GPUs. Used by the device watch, in the driver's thread.

Links are read once for the GPUs that there are, not for every request, since on some machines reading them takes seconds; and
read again when other GPUs are there, or when something could not be read.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpushare.domain.devices import GPU, Inventory
from gpushare.errors import Problem
from gpushare.nvml.port import Nvml
from gpushare.nvml.reading import read_links

if TYPE_CHECKING:
    from gpushare.allocation.topology import Topology


class Linking:
    """The topology of the GPUs that were there at the last reading."""

    def __init__(self, nvml: Nvml, log: logging.Logger) -> None:
        self.topology: Topology | None = None
        """None: not read yet. Replaced as a whole, so that any thread may take it."""
        self.problems: Sequence[Problem] = ()
        """What is odd about the links. No GPU is sick for it, and none is read again."""
        self._nvml = nvml
        self._log = log
        self._known: Sequence[tuple[int, str]] = ()

    def read(self, gpus: Sequence[GPU]) -> bool:
        """Reads the links between these GPUs unless they are known. True: there is news of them.

        Raises:
            DeviceError: the driver as a whole cannot be asked; what was known stays.
        """
        wanted = tuple((gpu.index, gpu.uuid) for gpu in gpus)
        if self.topology is not None and wanted == self._known:
            return False
        read = read_links(self._nvml, gpus)
        # GPUs of which something is missing are asked again next time.
        self._known = wanted if read.is_complete else ()
        news = read.problems != self.problems
        if news:
            self.problems = read.problems
            for problem in read.problems:
                self._log.warning("link between GPUs is odd", extra={"place": problem.path, "reason": problem.message})
        from gpushare.allocation.topology import Topology  # late: with the first links

        before, self.topology = self.topology, Topology.of(Inventory(gpus=tuple(gpus), links=read.links))
        return news or self.topology != before
