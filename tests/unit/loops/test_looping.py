"""The work queue of controllers."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager

import pytest

from gpushare.errors import ClusterRefused, Conflict
from gpushare.sandbox.loops import looping
from gpushare.sandbox.loops.caches import Caches
from gpushare.sandbox.loops.looping import Loop
from support.memory_cluster import MemoryCluster

LOG = logging.getLogger(__name__)
KEY = ("default", "web")


@asynccontextmanager
async def running(loop: Loop):
    task = asyncio.create_task(loop.run(Caches(MemoryCluster(), LOG)))
    try:
        yield
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_coalesce():
    """However often a key is asked for while it is worked on, it is done once more."""
    started, go_on, calls = asyncio.Queue(), asyncio.Event(), []

    async def sync(key):
        calls.append(key)
        started.put_nowait(key)
        await go_on.wait()

    loop = Loop("test", sync, LOG)
    async with running(loop):
        loop.request(KEY)
        loop.request(KEY)
        await started.get()
        for _ in range(5):
            loop.request(KEY)
        go_on.set()
        await started.get()

    assert calls == [KEY, KEY]


async def test_side_by_side():
    """A key that takes long does not keep others waiting."""
    done, never = asyncio.Event(), asyncio.Event()

    async def sync(key):
        if key == KEY:
            await never.wait()
        done.set()

    loop = Loop("test", sync, LOG)
    async with running(loop):
        loop.request(KEY)
        loop.request(("default", "other"))
        await done.wait()


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(Conflict("changed"), id="conflict"),
        pytest.param(ClusterRefused("no", code=403), id="refused"),
        pytest.param(KeyError("spec"), id="bug"),
    ],
)
async def test_again_after_failure(error, caplog):
    """What fails is tried again by itself."""
    errors, done = [error], asyncio.Event()

    async def sync(_key):
        if errors:
            raise errors.pop()
        done.set()

    loop = Loop("test", sync, LOG)
    async with running(loop):
        loop.request(KEY)
        await done.wait()


async def test_request_after():
    """The earliest of several times counts."""
    done = asyncio.Event()

    async def sync(_key):
        done.set()

    loop = Loop("test", sync, LOG)
    async with running(loop):
        loop.request_after(KEY, 3600)
        loop.request_after(KEY, 0.01)
        loop.request_after(KEY, 7200)
        await done.wait()


async def test_run_until():
    """Endless jobs end when told to."""
    stop, started = asyncio.Event(), asyncio.Event()

    async def job():
        started.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(looping.run_until(stop, job(), job()))
    await started.wait()
    stop.set()
    await task


async def test_run_until_broken():
    """A job that breaks ends all and is not swept under the carpet."""

    async def job():
        raise RuntimeError("broken")

    with pytest.raises(ExceptionGroup):
        await looping.run_until(asyncio.Event(), job())
