"""Agents under test: each with a root of its own, a kubelet beside it, and simulated GPUs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gpushare.agent import app
from gpushare.kubelet.server import PodResourcesServer
from gpushare.kubelet.values import ContainerDevices
from gpushare.nvml.simulated import SimulatedNvml
from support.kubelets import Kubelet

GPU = "nvidia.com/gpu"
SHARED = "nvidia.com/gpu.shared"
T4S: Mapping[str, Any] = {"gpus": [{"model": "Tesla-T4", "count": 4}]}
STOP_SECONDS = 60.0


def time_slicing(replicas: int, *, more: str = "") -> str:
    """A configuration text that shares all GPUs."""
    return f"version: v1\nsharing: {{timeSlicing: {{{more} resources: [{{name: nvidia.com/gpu, replicas: {replicas}}}]}}}}\n"


class Machine:
    """A node's machine: its root, its kubelet, its GPUs. Agents come and go on it."""

    def __init__(self, root: Path, description: Mapping[str, Any]) -> None:
        self.root = root
        self.kubelet = Kubelet(root / "var/lib/kubelet/device-plugins")
        self.nvml = SimulatedNvml.from_mapping(description, seed="node")
        self.holders: list[ContainerDevices] = []
        (root / "var/lib/kubelet/pod-resources").mkdir(parents=True)
        self.tell_holders()

    def tell_holders(self) -> None:
        """The kubelet's pod resources answer, as at first."""
        socket = self.root / "var/lib/kubelet/pod-resources/kubelet.sock"
        self._pod_resources = PodResourcesServer(socket, lambda: self.holders)
        self._pod_resources.start()

    def hide_holders(self) -> None:
        """They do not, as while a kubelet starts."""
        self._pod_resources.stop()

    def uuids(self) -> list[str]:
        self.nvml.start()
        return [self.nvml.gpu(index).uuid for index in range(self.nvml.count())]

    def configure(self, text: str) -> None:
        """As a ConfigMap volume does: nobody ever sees half a text."""
        partial = self.root / "config.new"
        partial.write_text(text)
        partial.replace(self.root / "config.yaml")

    def close(self) -> None:
        self.kubelet.stop()
        self.hide_holders()

    @contextlib.asynccontextmanager
    async def agent(
        self, *argv: str, environ: Mapping[str, str] | None = None, nvml: SimulatedNvml | None = None
    ) -> AsyncIterator[asyncio.Event]:
        """Runs an agent; gives the event that stops it. Checks that it ends well."""
        stop = asyncio.Event()
        run = app.run(
            argv,
            environ or {},
            root=self.root,
            nvml=nvml or self.nvml,
            log=logging.getLogger("agent"),
            stop=stop,
        )
        task = asyncio.create_task(run)
        try:
            yield stop
        finally:
            stop.set()
            async with asyncio.timeout(STOP_SECONDS):
                code = await task
        assert code == 0

    def with_config(self) -> contextlib.AbstractAsyncContextManager[asyncio.Event]:
        """An agent that follows the file that `configure` writes."""
        return self.agent("--config-file", "/config.yaml")


@contextlib.contextmanager
def machine(description: Mapping[str, Any] = T4S) -> Iterator[Machine]:
    """A machine with a root short enough for unix sockets, which pytest's own are not."""
    root = Path(tempfile.mkdtemp(prefix="gs"))
    made = Machine(root, description)
    try:
        yield made
    finally:
        made.close()
        shutil.rmtree(root)


def devices_of(ids: Iterable[str]) -> set[str]:
    """The physical devices behind ids of shares."""
    return {share.partition("::")[0] for share in ids}


async def until_logged(caplog: pytest.LogCaptureFixture, message: str) -> None:
    """Waits for a log line, the only sign of something that changes nothing."""
    async with asyncio.timeout(STOP_SECONDS):
        while message not in caplog.messages:  # noqa: ASYNC110 - a log has no event
            await asyncio.sleep(0.02)
