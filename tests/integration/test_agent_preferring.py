"""What the kubelet is told to prefer, over real gRPC, by an agent that knows how its GPUs are connected."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml

from gpushare.agent import configuration, devices
from gpushare.kubelet.values import PreferenceRequest
from support.agents import GPU, Machine, machine, time_slicing

DGX1 = yaml.safe_load((Path(__file__).parents[2] / "examples/05-topologies/dgx1-volta.yaml").read_text())


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configuration, "FILE_POLL_SECONDS", 0.02)
    monkeypatch.setattr(devices, "WAIT_SECONDS", 0.05)
    monkeypatch.setattr(devices, "READ_SECONDS", 0.1)
    monkeypatch.setattr(devices, "RECOVERY_SECONDS", 0.1)


@pytest.fixture
def node() -> Iterator[Machine]:
    with machine(DGX1) as made:
        made.kubelet.start()
        yield made


async def preferred(node: Machine, available: Sequence[int], size: int, *required: int) -> list[int]:
    """Indices of the GPUs, in the order of the first list."""
    uuids = [device.id for device in node.kubelet.lists[GPU][0]]
    request = PreferenceRequest(
        available=tuple(uuids[index] for index in available),
        must_include=tuple(uuids[index] for index in required),
        size=size,
    )
    (found,) = await asyncio.to_thread(node.kubelet.clients[GPU].preferred, [request])
    return [uuids.index(uuid) for uuid in found]


async def until_preferred(node: Machine, expected: list[int], available: Sequence[int], size: int) -> None:
    """Waits: links are read after the first list, and again when GPUs come and go."""
    async with asyncio.timeout(60):
        while await preferred(node, available, size) != expected:  # noqa: ASYNC110 - only asking shows what it knows
            await asyncio.sleep(0.02)


async def test_close_gpus(node: Machine) -> None:
    """GPUs that are close to each other; the same answer whatever the order of the question; none where none fits."""
    async with node.agent():
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 8)
        await until_preferred(node, [0, 3], range(8), 2)

        assert await preferred(node, [6, 5, 4, 0], 2) == [5, 6]
        assert await preferred(node, [0, 4, 5, 6], 2) == [5, 6]
        assert await preferred(node, range(8), 4, 4) == [4, 5, 6, 7]
        assert await preferred(node, [1, 2], 3) == []


async def test_a_lost_gpu(node: Machine) -> None:
    """The others stay as close as they are, and the lost one is not preferred, though the kubelet may not know yet."""
    async with node.agent():
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 8)
        await until_preferred(node, [0, 3], range(8), 2)
        node.nvml.lose(3)
        await node.kubelet.until(lambda: len(node.kubelet.ids(GPU)) == 7)

        await until_preferred(node, [0, 4], [0, 1, 4, 5], 2)
        assert await preferred(node, range(8), 7) == [0, 1, 2, 4, 5, 6, 7]
        assert await preferred(node, range(8), 8) == []


async def test_shares(node: Machine) -> None:
    """Shares of one request are spread over GPUs that are close to each other."""
    node.configure(time_slicing(2))
    async with node.with_config():
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 16)
        uuids = node.uuids()
        request = PreferenceRequest(available=tuple(node.kubelet.ids(GPU)), size=2)
        async with asyncio.timeout(60):
            while True:
                (found,) = await asyncio.to_thread(node.kubelet.clients[GPU].preferred, [request])
                if found == (f"{uuids[0]}::0", f"{uuids[3]}::0"):
                    break
                await asyncio.sleep(0.02)
