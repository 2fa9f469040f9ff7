"""A part that breaks does not take the others with it."""

from __future__ import annotations

import asyncio
import logging

import pytest

from gpushare.agent import keeping


async def test_starts_again(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """With the defect in the log."""
    monkeypatch.setattr(keeping, "AFTER_FAILURE_SECONDS", 0)
    tries = 0
    done = asyncio.Event()

    async def work() -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise ZeroDivisionError
        done.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(keeping.keep(work, logging.getLogger("test")))
    await done.wait()
    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()
    assert caplog.messages == ["unexpected failure"]
