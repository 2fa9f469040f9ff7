"""The recorded events of GPUs, put to a running agent: through the simulated driver, and through a true library of ours.

Equal is what turns unhealthy at each step, but for the deliberate differences: all shares of a GPU, the MIG instances that an
event is about, and only GPUs that are really concerned.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from gpushare.agent import app, devices, troubles
from gpushare.errors import DeviceError
from gpushare.nvml.port import Event, EventKind, Nvml
from gpushare.nvml.real import RealNvml
from support.described_nodes import BareNvml, build_machine, read_node
from support.kubelets import Kubelet
from support.nvml_library import plugged_in, write_stub
from support.recorded_cases import Case, read_cases

GPU = "nvidia.com/gpu"
NOTHING_COMES_SECONDS = 0.4
CASES = {case.name: case for case in read_cases("health")}

DIFFERENT: Mapping[str, Mapping[int, tuple[str, ...]]] = {
    # By step: what is unhealthy after it, as `GPU` or `GPU:MIG instance`.
    "t4x4-ts4-xid79": {0: ("1",), 1: ("1",)},
    "a100x2-migsingle-xid": {
        **{step: tuple(f"0:{index}" for index in range(step + 1)) for step in range(7)},
        7: tuple(f"{gpu}:{index}" for gpu in (0, 1) for index in range(7)),
    },
    "t4x4-gpulost": {0: ("1",), 1: ("1",), 2: ()},
    "t4x4-disable-all-enable-79": {0: (), 1: ("1",)},
}


class Simulated(BareNvml):
    """Takes the lines of the recorded control files."""

    waits_to_fail = 0

    def tell(self, line: str) -> None:
        words = line.split()
        match words[0]:
            case "lost":
                self.lose(int(words[1]))
            case "restore":
                self.restore(int(words[1]))
            case "waitfail":
                self.waits_to_fail = int(words[2])
            case "ecc":
                kind = EventKind.DOUBLE_BIT_ECC if words[2] == "double" else EventKind.SINGLE_BIT_ECC
                self.inject(Event(uuid=self._uuid(int(words[1])), kind=kind))
            case "xid":
                numbers = [*map(int, words[1:]), None, None]
                uuid = self._uuid(int(words[1]))
                self.inject(Event(uuid=uuid, xid=int(words[2]), gpu_instance=numbers[2], compute_instance=numbers[3]))

    def wait_event(self, timeout: float) -> Event | None:
        if self.waits_to_fail:
            self.waits_to_fail -= 1
            raise DeviceError("waiting for events of GPUs failed: unknown error")
        return super().wait_event(timeout)

    def _uuid(self, index: int) -> str:
        """Not of a GPU that is lost: as with a real driver."""
        try:
            return self.gpu(index).uuid
        except DeviceError:
            return ""


@contextlib.contextmanager
def simulated(node: str, folder: Path) -> Any:
    nvml = Simulated.from_mapping(read_node(node))
    yield nvml, nvml.tell


@contextlib.contextmanager
def true_library(node: str, folder: Path) -> Any:
    with plugged_in(write_stub(folder, node)) as stub:
        yield RealNvml(), stub.tell


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "WAIT_SECONDS", 0.05)
    monkeypatch.setattr(devices, "READ_SECONDS", 0.2)
    monkeypatch.setattr(devices, "RECOVERY_SECONDS", 0.1)
    monkeypatch.setattr(devices, "FIRST_RETRY_SECONDS", 0.05)
    monkeypatch.setattr(troubles, "QUIET_SECONDS", 2.0)


@contextlib.asynccontextmanager
async def agent_of(case: Case, nvml: Nvml) -> AsyncIterator[Kubelet]:
    with tempfile.TemporaryDirectory(prefix="gs") as directory:
        root = Path(directory)
        build_machine(case.body["node"]).write(root)
        flags = list(case.body["flags"])
        if case.text:
            (root / "config.json").write_text(case.text)
            flags.append("--config-file=/config.json")
        kubelet = Kubelet(root / "var/lib/kubelet/device-plugins").start()
        stop = asyncio.Event()
        log = logging.getLogger("agent")
        running = asyncio.create_task(app.run(flags, case.body["env"], root=root, nvml=nvml, log=log, stop=stop))
        try:
            yield kubelet
        finally:
            stop.set()
            assert await running == 0
            await asyncio.to_thread(kubelet.stop)


def unhealthy_of(kubelet: Kubelet) -> set[str]:
    return {device.id for device in kubelet.lists[GPU][-1] if not device.healthy}


def expected_after(case: Case, step: int) -> set[str]:
    """Ids that are unhealthy after a step."""
    if case.name not in DIFFERENT:
        return set(case.body["steps"][step]["updates"][GPU]["unhealthy"])
    places = DIFFERENT[case.name][step]
    return {str(share.id) for share in case.built.pools[GPU].shares if share.device_index in places}


@pytest.mark.parametrize("driver", [simulated, true_library])
@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
async def test_health_as_recorded(case: Case, driver: Callable[..., Any], tmp_path: Path) -> None:
    """Step by step, what turns unhealthy at the kubelet, and nothing else."""
    with driver(case.body["node"], tmp_path) as (nvml, tell):
        async with agent_of(case, nvml) as kubelet:
            total = case.body["steps"][0]["updates"][GPU]["total"]
            await kubelet.until(lambda: kubelet.total(GPU) == total)
            for number, step in enumerate(case.body["steps"]):
                before, expected = unhealthy_of(kubelet), expected_after(case, number)
                tell(step["inject"])
                if expected == before:
                    await asyncio.sleep(NOTHING_COMES_SECONDS)
                await kubelet.until(lambda expected=expected: unhealthy_of(kubelet) == expected)
                assert kubelet.total(GPU) == total


@pytest.mark.parametrize("driver", [simulated, true_library])
async def test_marked_because_waiting_failed(driver: Callable[..., Any], tmp_path: Path) -> None:
    """All of them, since nobody knows which would have reported; well again by themselves, and heard again."""
    case = CASES["t4x4-waitfail"]
    with driver(case.body["node"], tmp_path) as (nvml, tell):
        async with agent_of(case, nvml) as kubelet:
            await kubelet.until(lambda: kubelet.total(GPU) == 4)
            tell("waitfail 999 1")
            await kubelet.until(lambda: len(unhealthy_of(kubelet)) == 4)
            await kubelet.until(lambda: not unhealthy_of(kubelet))
            tell("xid 1 79")
            await kubelet.until(lambda: len(unhealthy_of(kubelet)) == 1)
