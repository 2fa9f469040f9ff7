"""Shares that wait for their MPS daemon, and nothing else that does."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Mapping

import pytest

from gpushare.agent import mps_readiness
from gpushare.agent.mps_readiness import SILENCES, MpsReadiness
from gpushare.api.sharing import DeviceSelection
from gpushare.domain.devices import MigStrategy
from gpushare.domain.pools import Pool, Strategy
from gpushare.errors import ProgramFailed
from gpushare.sharing.building import build_pools
from support.inventories import entry, sliced, t4s

GPU = "nvidia.com/gpu"
SHARED = "nvidia.com/gpu.shared"
GONE = ProgramFailed("Cannot find MPS control daemon process")
SILENT = ProgramFailed("does not answer within 3 s", hangs=True)


class Machine:
    """Answers as told; a coroutine that never ends where it is told nothing."""

    def __init__(self, answer: float | ProgramFailed | None = None) -> None:
        self.answer = answer
        self.hangs = False
        self.asked = 0

    async def ask_percentage(self, _resource: str) -> float | None:
        self.asked += 1
        if self.hangs:
            await asyncio.Event().wait()
        if isinstance(self.answer, ProgramFailed):
            raise self.answer
        return self.answer


class Gate:
    """A readiness with its machine, and an event for its changes."""

    def __init__(self, answer: float | ProgramFailed | None) -> None:
        self.machine = Machine(answer)
        self.changed = asyncio.Event()
        self.readiness = MpsReadiness(
            self.machine,  # type: ignore[arg-type]
            logging.getLogger("test"),
            on_change=self.changed.set,
        )

    async def offered(self, pools: Mapping[str, Pool]) -> dict[str, int]:
        return {name: len(pool.shares) for name, pool in (await self.readiness.offerable(pools)).items()}

    async def change(self, answer: float | ProgramFailed) -> None:
        """The world changes, and is noticed."""
        self.machine.answer = answer
        self.changed.clear()
        async with asyncio.timeout(60):
            await self.changed.wait()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.readiness.run())
        yield
        task.cancel()
        await asyncio.wait([task])


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for seconds."""
    for name in ("FIRST_ANSWER_SECONDS", "LOOK_SECONDS", "FIRST_RETRY_SECONDS", "LONGEST_RETRY_SECONDS"):
        monkeypatch.setattr(mps_readiness, name, 0.02)


def pools(replicas: int = 4, strategy: Strategy = Strategy.MPS, **fields: object) -> Mapping[str, Pool]:
    config = sliced(entry(replicas, **fields), strategy=strategy)
    return build_pools(t4s(2), config, MigStrategy.NONE).pools


async def test_daemon_runs() -> None:
    """An agent that starts beside a running daemon offers everything with its first list."""
    gate = Gate(25.0)

    assert await gate.offered(pools()) == {GPU: 8}
    assert gate.readiness.reasons == {GPU: ""}


async def test_answers_something_else() -> None:
    """A daemon that answers is a daemon."""
    assert await Gate(None).offered(pools()) == {GPU: 8}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(GONE, "its MPS daemon does not run: Cannot find MPS control daemon process", id="gone"),
        pytest.param(50.0, "its MPS daemon still gives each client 50 % of the threads, not 25 %", id="other limits"),
    ],
)
async def test_waits(answer: float | ProgramFailed, reason: str) -> None:
    """Nothing is offered, and why; the pool stays what it is, so that labels call for the daemon."""
    gate = Gate(answer)

    (pool,) = (await gate.readiness.offerable(pools())).values()

    assert (pool.shares, pool.strategy, pool.replicas) == ((), Strategy.MPS, 4)
    assert gate.readiness.reasons == {GPU: reason}


async def test_whole_devices_do_not_wait() -> None:
    """What MPS does not share is offered all the time."""
    gate = Gate(GONE)

    assert await gate.offered(pools(devices=DeviceSelection(refs=("0",)))) == {GPU: 1}
    assert await gate.offered(pools(devices=DeviceSelection(refs=("0",)), offered_as=SHARED)) == {GPU: 1, SHARED: 0}
    assert await gate.offered(pools(strategy=Strategy.TIME_SLICING)) == {GPU: 8}
    assert gate.readiness.reasons == {}


async def test_does_not_hold_up_a_pass() -> None:
    """A daemon that hangs costs the rest of the node a moment, once."""
    gate = Gate(25.0)
    gate.machine.hangs = True

    assert await gate.offered(pools()) == {GPU: 0}
    assert gate.readiness.reasons == {GPU: "its MPS daemon has not answered yet"}
    assert await gate.offered(pools()) == {GPU: 0}
    assert gate.machine.asked == 1


async def test_ended_while_it_asks() -> None:
    """Nothing that was asked goes on by itself."""
    gate = Gate(25.0)
    gate.machine.hangs = True
    before = asyncio.all_tasks()
    offering = asyncio.create_task(gate.offered(pools()))
    while not gate.machine.asked:  # noqa: ASYNC110 - it is asked in this loop
        await asyncio.sleep(0)
    offering.cancel()
    await asyncio.wait([offering])
    await asyncio.sleep(0)

    assert asyncio.all_tasks() == before


async def test_comes_and_goes() -> None:
    """Noticed without being asked, in both directions, again and again."""
    gate = Gate(GONE)
    async with gate.running():
        assert await gate.offered(pools()) == {GPU: 0}

        await gate.change(25.0)
        assert await gate.offered(pools()) == {GPU: 8}

        await gate.change(GONE)
        assert await gate.offered(pools()) == {GPU: 0}

        await gate.change(25.0)
        assert await gate.offered(pools()) == {GPU: 8}


async def test_slow_is_not_gone() -> None:
    """Pods are not refused because a daemon was slow once."""
    gate = Gate(25.0)
    assert await gate.offered(pools()) == {GPU: 8}
    async with gate.running():
        before = gate.machine.asked

        await gate.change(SILENT)

        assert gate.machine.asked - before >= SILENCES
        assert "does not answer within 3 s" in gate.readiness.reasons[GPU]


async def test_other_replicas() -> None:
    """Shares of another size wait until the daemon has the new limits, also where it runs with the old ones."""
    gate = Gate(25.0)
    async with gate.running():
        assert await gate.offered(pools(4)) == {GPU: 8}
        assert await gate.offered(pools(2)) == {GPU: 0}

        await gate.change(50.0)
        assert await gate.offered(pools(2)) == {GPU: 4}


async def test_asks_nobody_without_mps() -> None:
    """A node without MPS starts no program."""
    gate = Gate(GONE)
    async with gate.running():
        assert await gate.offered(pools(strategy=Strategy.TIME_SLICING)) == {GPU: 8}
        await asyncio.sleep(0.1)

        assert gate.machine.asked == 0
