"""The MPS process under test: a machine with simulated GPUs and stand-ins for NVIDIA's programs. Processes come and go on it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from gpushare.host.files import HostFiles
from gpushare.host.mps import MpsMachine, Patience
from gpushare.kube.cluster import Cluster
from gpushare.mps.options import parse
from gpushare.mps.running import MpsService, Pace
from gpushare.nvml.simulated import SimulatedNvml
from support.mps_programs import MpsPrograms, daemon_pid

GPU = "nvidia.com/gpu"
QUICK = Pace(first_answers=0.5, look=0.1, retry=0.05, longest_retry=0.1, relay=0.05)
PATIENCE = Patience(ask=30, tell=30, quit=30, force=30, end=30)
"""Longer than any program takes on a machine that has other things to do."""
HURRY = Patience(ask=1.5, tell=30, quit=1.5, force=1.5, end=1.5)
"""For programs that hang: each of these is waited for to its end."""
WAIT_SECONDS = 60.0
CONFIG_FILE = ("--config-file", "/config.yaml")


def mps(replicas: int, more: str = "") -> str:
    """A configuration text that shares all GPUs by MPS."""
    return f"version: v1\nsharing: {{mps: {{{more} resources: [{{name: nvidia.com/gpu, replicas: {replicas}}}]}}}}\n"


class MpsNode:
    """A node's machine."""

    def __init__(self, root: Path, gpus: int = 2) -> None:
        self.root = root
        self.programs = MpsPrograms(root / "bin")
        description: Mapping[str, Any] = {"gpus": [{"model": "Tesla-T4", "count": gpus}]}
        self.nvml = SimulatedNvml.from_mapping(description, seed="node")

    @property
    def uuids(self) -> list[str]:
        nvml = self.nvml.connect()
        nvml.start()
        return [nvml.gpu(index).uuid for index in range(nvml.count())]

    def configure(self, text: str) -> None:
        (self.root / "config.yaml").write_text(text)

    def runs(self, percentage: int = 25) -> bool:
        """Whether a daemon with these limits runs."""
        path = self.root / "mps" / GPU / "pipe/percentage"
        return daemon_pid(self.root, GPU) is not None and path.exists() and path.read_text() == f"{percentage}\n"

    @property
    def memory(self) -> Path:
        """What the process remembers over its restarts."""
        return self.root / "var/lib/gpushare/mps.json"

    @contextlib.asynccontextmanager
    async def running(self, *argv: str, cluster: Cluster | None = None) -> AsyncIterator[MpsService]:
        """The process, until the end of the block."""
        log, files = logging.getLogger("mps"), HostFiles(self.root)
        machine = MpsMachine(files, self.programs.environ, lambda: "/driver-root", log, PATIENCE)
        service = MpsService(parse(argv, {}), files, machine, self.nvml.connect(), log, QUICK)
        stop = asyncio.Event()
        task = asyncio.create_task(service.run(cluster, stop))
        try:
            yield service
        finally:
            stop.set()
            async with asyncio.timeout(WAIT_SECONDS):
                await task

    def with_config(self, text: str) -> contextlib.AbstractAsyncContextManager[MpsService]:
        """The process with a configuration file."""
        self.configure(text)
        return self.running(*CONFIG_FILE)


async def until(holds: Callable[[], object]) -> None:
    """Waits for something that only polling shows."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not holds():  # noqa: ASYNC110 - files have no event
            await asyncio.sleep(0.02)
