"""Asking the kubelet who holds what: often enough, and never too often."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gpushare.agent import holding
from gpushare.agent.holding import HolderWatch
from gpushare.kubelet.server import PodResourcesServer
from gpushare.kubelet.values import ContainerDevices

PAUSE_SECONDS = 0.1


class Asked:
    """A kubelet that counts how often it is asked, and a watch that asks it."""

    def __init__(self, socket: Path, executor: ThreadPoolExecutor) -> None:
        self.times = 0
        self.holders: list[ContainerDevices] = []
        self._socket = socket
        self.serve()
        self.read = asyncio.Event()
        self.changes = 0
        self.watch = HolderWatch(socket, executor, on_read=self.read.set, on_change=self._change)

    def serve(self) -> None:
        self.server = PodResourcesServer(self._socket, self._answer)
        self.server.start()

    def _answer(self) -> list[ContainerDevices]:
        self.times += 1
        return self.holders

    def _change(self) -> None:
        self.changes += 1

    async def next_reading(self) -> None:
        self.read.clear()
        async with asyncio.timeout(60):
            await self.read.wait()

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.watch.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])


@pytest.fixture
async def asked(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Asked]:
    monkeypatch.setattr(holding, "PAUSE_SECONDS", PAUSE_SECONDS)
    monkeypatch.setattr(holding, "AFTER_ALLOCATE_SECONDS", 0.01)
    with tempfile.TemporaryDirectory(prefix="gs") as folder, ThreadPoolExecutor(2) as executor:
        made = Asked(Path(folder, "pods.sock"), executor)
        yield made
        made.server.stop()


def holder(pod: str) -> ContainerDevices:
    return ContainerDevices(namespace="n", pod=pod, container="c", resource="nvidia.com/gpu", ids=("GPU-0",))


async def test_many_allocates_are_few_questions(asked: Asked) -> None:
    """Kubelets take a few questions a second, and refuse the rest."""
    clock = asyncio.get_running_loop().time
    began = clock()
    async with asked.watching():
        await asked.next_reading()
        for _ in range(50):
            asked.watch.see_allocate()
            await asyncio.sleep(0.005)
        await asked.next_reading()

    assert 2 <= asked.times <= (clock() - began) / PAUSE_SECONDS + 1


async def test_allocate_while_it_is_read(asked: Asked) -> None:
    """It is told by the next reading; what is as before is no change, but that nobody holds anything is news at first."""
    async with asked.watching():
        await asked.next_reading()
        assert asked.changes == 1
        asked.holders = [holder("b"), holder("a")]
        asked.watch.see_allocate()
        await asked.next_reading()
        assert [found.pod for found in asked.watch.holders] == ["a", "b"]
        asked.watch.see_allocate()
        await asked.next_reading()

    assert asked.changes == 2


async def test_allocate_just_before_it_is_read(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kubelet may not have written it down by then: it is asked once more."""
    monkeypatch.setattr(holding, "AFTER_ALLOCATE_SECONDS", 0.3)
    monkeypatch.setattr(holding, "POLL_SECONDS", 1000)
    async with asked.watching():
        await asked.next_reading()
        asked.watch.see_allocate()
        await asyncio.sleep(PAUSE_SECONDS + 0.1)
        asked.watch.see_allocate()
        while asked.times < 3:
            await asked.next_reading()


async def test_kubelet_that_does_not_answer(asked: Asked) -> None:
    """What was known is kept, and that it may be old is known too."""
    asked.holders = [holder("a")]
    async with asked.watching():
        await asked.next_reading()
        assert await asked.watch.ask() == (holder("a"),)
        asked.server.stop()
        asked.watch.see_allocate()
        await asked.next_reading()

    assert [found.pod for found in asked.watch.holders] == ["a"]
    assert await asked.watch.ask() is None


async def test_kubelet_that_has_not_answered_yet(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """That nobody knows who holds what is not that nobody holds anything; whoever waits for it hears of the first answer."""
    monkeypatch.setattr(holding, "AGAIN_SECONDS", 0.01)
    asked.server.stop()
    async with asked.watching():
        await asked.next_reading()
        waiting = asyncio.create_task(asked.watch.until_known())
        await asyncio.sleep(0)
        assert (asked.watch.is_known, asked.changes, waiting.done()) == (False, 0, False)
        asked.holders = [holder("a")]
        asked.serve()
        async with asyncio.timeout(60):
            await waiting
        asked.watch.see_allocate()
        await asked.next_reading()

    assert asked.watch.is_known
    assert [found.pod for found in asked.watch.holders] == ["a"]


async def test_asked_again_until_it_tells(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a scheduler waits for it, a kubelet that has not written down an Allocate yet is asked again soon."""
    monkeypatch.setattr(holding, "AGAIN_SECONDS", 0.01)
    asked.watch.awaits_more = lambda: asked.times < 4
    async with asked.watching():
        while asked.times < 4:
            await asked.next_reading()

    assert asked.times == 4
