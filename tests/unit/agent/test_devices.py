"""Watching GPUs that get lost, report, and come back."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gpushare.agent import devices, troubles
from gpushare.agent.devices import DeviceWatch
from gpushare.agent.health import Checks
from gpushare.agent.memory import Memory
from gpushare.agent.options import HealthChecks
from gpushare.domain.devices import GPU
from gpushare.errors import DeviceError
from gpushare.host.files import HostFiles
from gpushare.host.state import StateFile
from gpushare.nvml.port import Event, GpuLost, Recovery
from gpushare.nvml.simulated import SimulatedNvml

T4S = {"gpus": [{"model": "Tesla-T4", "count": 3}]}


class Watched:
    """A watch at work, and what it told."""

    def __init__(self, nvml: SimulatedNvml, root: Path, checks: Checks | None = None) -> None:
        log = logging.getLogger("test")
        self.nvml = nvml
        self._changed = asyncio.Event()
        self.served = asyncio.Event()
        self.served.set()
        self._executor = ThreadPoolExecutor(1)
        self.memory = Memory(StateFile(root / "state.json", log), self._executor)
        self.watch = DeviceWatch(
            nvml, HostFiles(root), checks or Checks(), self.memory, log, on_change=self._changed.set
        )

    @property
    def gpus(self) -> tuple[GPU, ...]:
        return self.watch.inventory.gpus if self.watch.inventory else ()

    @property
    def sick(self) -> list[int]:
        return [gpu.index for gpu in self.gpus if not gpu.health.healthy]

    async def until(self, expected: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not expected():
                self._changed.clear()
                await self._changed.wait()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.watch.run(self.served))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])
            await self.watch.close()
            await self.memory.close()
            self._executor.shutdown()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "WAIT_SECONDS", 0.02)
    monkeypatch.setattr(devices, "RECOVERY_SECONDS", 0.03)
    monkeypatch.setattr(troubles, "QUIET_SECONDS", 0.1)


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


class Bereaved(SimulatedNvml):
    """As a real driver: while a GPU that is listened to is off the bus, nothing is heard of any."""

    def lose(self, index: int) -> None:
        uuid = self.gpu(index).uuid
        super().lose(index)
        self.missed = uuid

    def wait_event(self, timeout: float) -> Event | None:
        if getattr(self, "missed", "") in self._connection.registered:
            raise GpuLost("waiting for events of GPUs failed: GPU is lost")
        return super().wait_event(timeout)


async def test_lost_gpu_that_ends_the_waiting(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Only that one is sick, the others are heard again, and the log has it."""
    nvml = Bereaved.from_mapping(T4S, seed="node")
    watched = Watched(nvml, tmp_path)
    async with watched.running():
        await watched.until(lambda: len(watched.gpus) == 3)
        nvml.lose(1)
        await watched.until(lambda: watched.sick != [])
        assert watched.sick == [1]
        nvml.inject(Event(uuid=watched.gpus[2].uuid, xid=79))
        await watched.until(lambda: watched.sick == [1, 2])

    told = [record for record in caplog.records if record.message == "device is not well"]
    assert [vars(record)["reason"] for record in told] == ["GPU 1: GPU 1 is lost", "GPU 2: XID 79"]


async def test_waiting_that_fails_for_nobody(tmp_path: Path) -> None:
    """Where no GPU of those that are listened to is lost, nobody is trusted, and it is tried ever more slowly."""
    nvml = Bereaved.from_mapping(T4S, seed="node")
    watched = Watched(nvml, tmp_path)
    async with watched.running():
        await watched.until(lambda: len(watched.gpus) == 3)
        nvml.missed = watched.gpus[1].uuid
        await watched.until(lambda: watched.sick == [0, 1, 2])


class Deaf(SimulatedNvml):
    """Some GPUs report nothing, others cannot be asked to."""

    def register_events(self, index: int) -> bool:
        if index == 0:
            return False
        raise DeviceError("busy")


async def test_gpus_that_cannot_be_listened_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that never reports anything is served; one whose reports cannot be had is not trusted."""
    monkeypatch.setattr(devices, "READ_SECONDS", 0.05)
    nvml = Deaf.from_mapping(T4S, seed="node")
    watched = Watched(nvml, tmp_path)
    async with watched.running():
        await watched.until(lambda: watched.sick == [1, 2])
        nvml.lose(0)
        await watched.until(lambda: watched.sick == [0, 1, 2])

        assert watched.gpus[1].health.reason == "busy"


async def test_no_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node may have none."""
    watched = Watched(SimulatedNvml.from_mapping({"gpus": []}), tmp_path)
    async with watched.running():
        await watched.watch.answered.wait()

        assert watched.gpus == ()
        assert watched.watch.failure == ""


async def test_sick_after_a_restart(nvml: SimulatedNvml, tmp_path: Path) -> None:
    """The next agent knows what was wrong, and hears from the driver when it is over."""
    first = Watched(nvml, tmp_path)
    async with first.running():
        await first.until(lambda: len(first.gpus) == 3)
        nvml.inject(Event(uuid=first.gpus[1].uuid, xid=79))
        await first.until(lambda: first.sick == [1])
    second = Watched(nvml, tmp_path)
    async with second.running():
        await second.until(lambda: second.sick == [1])
        assert second.gpus == first.gpus
        nvml.ask_for(1, Recovery.RESET)
        await second.until(lambda: "reset" in second.gpus[1].health.reason)
        nvml.ask_for(1, Recovery.NONE)
        await second.until(lambda: second.sick == [])

    assert second.memory.state.troubles == ()


async def test_report_about_a_new_instance(tmp_path: Path) -> None:
    """The layout may have changed since it was read: it is read again, and what the report names is sick."""
    nvml = SimulatedNvml.from_mapping({"gpus": [{"model": "A100-SXM4-40GB", "mig": ["3g.20gb"]}]}, seed="node")
    watched = Watched(nvml, tmp_path)
    async with watched.running():
        await watched.until(lambda: len(watched.gpus) == 1)
        nvml.split(0, ["1g.5gb", "1g.5gb"])
        new = nvml.gpu(0).mig[1]
        nvml.inject(Event(uuid=watched.gpus[0].uuid, xid=48, gpu_instance=new.gpu_instance))
        await watched.until(lambda: [mig.health.healthy for mig in watched.gpus[0].mig] == [True, False])


async def test_checks_that_are_off(nvml: SimulatedNvml, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing makes a GPU sick; one that cannot be read is as it was."""
    monkeypatch.setattr(devices, "READ_SECONDS", 0.05)
    watched = Watched(nvml, tmp_path, Checks.parse(HealthChecks(disabled="all")))
    async with watched.running():
        await watched.until(lambda: len(watched.gpus) == 3)
        before = watched.gpus
        nvml.inject(Event(uuid=watched.gpus[0].uuid, xid=79))
        nvml.lose(1)
        await watched.until(lambda: bool(watched.watch.inventory and watched.watch.inventory.problems))
        assert watched.gpus == before
        nvml.fail("gone")
        await watched.until(lambda: watched.watch.failure == "gone")

        assert watched.gpus == before


class Forgetful(SimulatedNvml):
    """As a real driver: a GPU that is reset has no listeners any more."""

    def lose(self, index: int) -> None:
        self._connection.registered.discard(self.gpu(index).uuid)
        super().lose(index)


async def test_gpu_that_is_back_is_listened_to_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or nobody would hear of its next error."""
    monkeypatch.setattr(devices, "READ_SECONDS", 0.05)
    nvml = Forgetful.from_mapping(T4S, seed="node")
    watched = Watched(nvml, tmp_path)
    async with watched.running():
        await watched.until(lambda: len(watched.gpus) == 3)
        nvml.lose(1)
        await watched.until(lambda: watched.sick == [1])
        nvml.restore(1)
        await watched.until(lambda: watched.sick == [])
        nvml.inject(Event(uuid=watched.gpus[1].uuid, xid=79))
        await watched.until(lambda: watched.sick == [1])
