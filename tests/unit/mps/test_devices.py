"""GPUs as the MPS process reads them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gpushare.host.files import HostFiles
from gpushare.mps import devices
from gpushare.mps.devices import DevicePoll
from gpushare.nvml.simulated import SimulatedNvml


@contextlib.asynccontextmanager
async def polling(root: Path, nvml: SimulatedNvml) -> AsyncIterator[tuple[DevicePoll, asyncio.Event]]:
    changed = asyncio.Event()
    poll = DevicePoll(nvml, HostFiles(root), logging.getLogger("test"), on_change=changed.set)
    task = asyncio.create_task(poll.run())
    try:
        yield poll, changed
    finally:
        task.cancel()
        await asyncio.wait([task])
        await poll.close()


async def test_poll(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails, answers, fails again: what was known stays known."""
    monkeypatch.setattr(devices, "READ_SECONDS", 0.02)
    monkeypatch.setattr(devices, "FIRST_RETRY_SECONDS", 0.02)
    nvml = SimulatedNvml.from_mapping({"gpus": [{"model": "Tesla-T4", "count": 2}]})
    nvml.fail("no driver")
    async with polling(tmp_path, nvml) as (poll, changed):
        await poll.answered.wait()
        assert (poll.inventory, poll.failure) == (None, "no driver")

        nvml.fail("")
        await changed.wait()
        assert poll.inventory is not None
        assert (len(poll.inventory.gpus), poll.failure) == (2, "")

        nvml.lose(1)
        changed.clear()
        await changed.wait()
        assert len(poll.inventory.gpus) == 2

        nvml.fail("gone again")
        async with asyncio.timeout(60):
            while not poll.failure:  # noqa: ASYNC110 - the inventory does not change
                await asyncio.sleep(0.01)
        assert len(poll.inventory.gpus) == 2
