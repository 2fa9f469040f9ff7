"""The loop of passes."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

import pytest

from gpushare.controller.looping import Loop
from gpushare.errors import ClusterUnavailable

pytestmark = pytest.mark.usefixtures("skipped_time")


class Passes:
    """Counts passes and resyncs; fails as often as told."""

    def __init__(self, *, failing_resyncs: int = 0, resync_seconds: float = 300.0) -> None:
        self.passes = 0
        self.resyncs = 0
        self.failures: list[Exception] = []
        self.running = 0
        self.started = asyncio.Event()
        self.gate: asyncio.Event | None = None
        self._failing_resyncs = failing_resyncs
        self._changed = asyncio.Event()
        self.log = logging.getLogger("test")
        self.loop = Loop(self._pass, resync=self._resync, resync_seconds=resync_seconds, log=self.log)

    async def _pass(self) -> None:
        self.running += 1
        self.started.set()
        assert self.running == 1
        try:
            if self.gate is not None:
                await self.gate.wait()
            self.passes += 1
            if self.failures:
                raise self.failures.pop(0)
        finally:
            self.running -= 1
            self._changed.set()

    async def _resync(self) -> None:
        self.resyncs += 1
        self._changed.set()
        if self.resyncs <= self._failing_resyncs:
            raise ClusterUnavailable("not all is seen yet")

    async def until(self, *, passes: int = 0, resyncs: int = 0) -> None:
        while self.passes < passes or self.resyncs < resyncs:
            self._changed.clear()
            await self._changed.wait()

    @contextlib.asynccontextmanager
    async def going(self) -> AsyncIterator[Loop]:
        task = asyncio.create_task(self.loop.run())
        try:
            yield self.loop
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def test_first_pass() -> None:
    """The first pass needs nobody to ask for it."""
    passes = Passes()
    async with passes.going():
        await passes.until(passes=1)
    assert passes.resyncs == 1


async def test_no_pass_before_everything_is_seen() -> None:
    """With half of the cluster seen, a pass would remove the other half."""
    passes = Passes(failing_resyncs=2)
    async with passes.going() as loop:
        loop.request("node")
        await passes.until(resyncs=2)
        assert passes.passes == 0
        await passes.until(passes=1)
    assert passes.resyncs == 3


async def test_burst() -> None:
    """Many wishes in a moment make one pass."""
    passes = Passes()
    async with passes.going() as loop:
        await passes.until(passes=1)
        for _ in range(100):
            loop.request("node")
            await asyncio.sleep(0)
        await passes.until(passes=2)
        await asyncio.sleep(0.1)
    assert passes.passes == 2


async def test_wish_during_a_pass() -> None:
    """What is asked for while a pass runs is not lost, and does not run beside it."""
    passes = Passes()
    passes.gate = asyncio.Event()
    async with passes.going() as loop:
        await passes.started.wait()
        loop.request("node")
        passes.gate.set()
        await passes.until(passes=2)


@pytest.mark.parametrize("error", [ClusterUnavailable("away"), ValueError("a defect")], ids=["away", "defect"])
async def test_failure(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    """A pass that fails is tried again, whatever it failed with."""
    passes = Passes()
    passes.failures = [error, error]
    async with passes.going():
        await passes.until(passes=3)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        "pass failed"
    ] * 2


async def test_resync() -> None:
    """From time to time everything is looked at without a reason."""
    passes = Passes(resync_seconds=0.02)
    async with passes.going():
        await passes.until(resyncs=3, passes=3)
