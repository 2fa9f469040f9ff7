"""Watching GPUs that get lost, report, and come back."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from gpushare.agent import devices
from gpushare.agent.devices import DeviceWatch
from gpushare.agent.health import XidFilter
from gpushare.domain.devices import GPU
from gpushare.errors import DeviceError
from gpushare.host.files import HostFiles
from gpushare.nvml.port import Event
from gpushare.nvml.simulated import SimulatedNvml

T4S = {"gpus": [{"model": "Tesla-T4", "count": 3}]}


class Watched:
    """A watch at work, and what it told."""

    def __init__(self, nvml: SimulatedNvml, root: Path) -> None:
        self.nvml = nvml
        self._changed = asyncio.Event()
        self.watch = DeviceWatch(
            nvml, HostFiles(root), XidFilter(), logging.getLogger("test"), on_change=self._changed.set
        )

    @property
    def gpus(self) -> tuple[GPU, ...]:
        return self.watch.inventory.gpus if self.watch.inventory else ()

    @property
    def sick(self) -> list[int]:
        return [gpu.index for gpu in self.gpus if not gpu.health.healthy]

    async def until(self, expected: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not expected():
                self._changed.clear()
                await self._changed.wait()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.watch.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])
            await self.watch.close()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "WAIT_SECONDS", 0.02)


@pytest.fixture
def nvml() -> SimulatedNvml:
    return SimulatedNvml.from_mapping(T4S, seed="node")


async def test_report_of_no_gpu_in_particular(nvml: SimulatedNvml, tmp_path: Path) -> None:
    """All are read again, and only those concerned are sick."""
    watched = Watched(nvml, tmp_path)
    async with watched.running():
        await watched.until(lambda: len(watched.gpus) == 3)
        nvml.lose(1)
        nvml.inject(Event(uuid="", xid=79))
        await watched.until(lambda: watched.sick == [1])

        assert watched.gpus[1].health.reason == "GPU 1 is lost"


async def test_mark_stays_when_all_is_read_again(
    nvml: SimulatedNvml, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GPU that reported an error is readable, and sick all the same; saying it twice is no news."""
    monkeypatch.setattr(devices, "READ_SECONDS", 0.05)
    watched = Watched(nvml, tmp_path)
    async with watched.running():
        await watched.until(lambda: len(watched.gpus) == 3)
        nvml.inject(Event(uuid=watched.gpus[0].uuid, xid=48))
        nvml.inject(Event(uuid=watched.gpus[0].uuid, xid=79))
        await watched.until(lambda: watched.sick == [0])
        nvml.lose(2)
        await watched.until(lambda: watched.sick == [0, 2])

        assert watched.gpus[0].health.reason == "XID 48"


async def test_driver_that_comes_back(nvml: SimulatedNvml, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing before it answers; everything sick while it does not; listened to again afterwards."""
    monkeypatch.setattr(devices, "FIRST_RETRY_SECONDS", 0.01)
    nvml.fail("not loaded")
    watched = Watched(nvml, tmp_path)
    async with watched.running():
        await watched.until(lambda: watched.watch.failure == "not loaded")
        assert watched.watch.inventory is None
        nvml.fail("")
        await watched.until(lambda: len(watched.gpus) == 3)
        nvml.fail("gone")
        await watched.until(lambda: watched.sick == [0, 1, 2])
        nvml.fail("")
        await watched.until(lambda: watched.sick == [] and not watched.watch.failure)
        nvml.inject(Event(uuid=watched.gpus[2].uuid, xid=79))
        await watched.until(lambda: watched.sick == [2])


class Deaf(SimulatedNvml):
    """Some GPUs report nothing, others cannot be asked to."""

    def register_events(self, index: int) -> bool:
        if index == 0:
            return False
        raise DeviceError("busy")


async def test_gpus_that_cannot_be_listened_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are served, and read again now and then."""
    monkeypatch.setattr(devices, "READ_SECONDS", 0.05)
    nvml = Deaf.from_mapping(T4S, seed="node")
    watched = Watched(nvml, tmp_path)
    async with watched.running():
        await watched.until(lambda: len(watched.gpus) == 3)
        nvml.lose(1)
        await watched.until(lambda: watched.sick == [1])


async def test_no_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node may have none."""
    watched = Watched(SimulatedNvml.from_mapping({"gpus": []}), tmp_path)
    async with watched.running():
        await watched.watch.answered.wait()

        assert watched.gpus == ()
        assert watched.watch.failure == ""
