"""How the controller ends kopf, by kopf's own way of ending."""

from __future__ import annotations

import asyncio
import contextlib
import logging

import pytest

from gpushare.controller import operating


@pytest.mark.usefixtures("skipped_time")
async def test_task_that_goes_on_after_it_was_cancelled() -> None:
    """A watch of kopf that takes its cancellation for a pause is cancelled until it ends; all else is left alone."""

    async def go_on() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    neighbour = asyncio.create_task(asyncio.Event().wait())
    before = asyncio.all_tasks()
    watch = asyncio.create_task(go_on())
    first = asyncio.create_task(asyncio.sleep(0))

    await operating.run_to_the_end([first], ignored=before)

    assert watch.cancelled()
    assert not neighbour.done()
    neighbour.cancel()


def test_server_that_is_away_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """A dozen watches that fail again and again for one reason are one line."""
    kopf = logging.getLogger("kopf.clients")
    with operating._logged_to(logging.getLogger("controller")):
        for attempt in range(3):
            for plural in ("nodes", "pods"):
                kopf.error("Request attempt #%s failed; will retry: GET /api/v1/%s -> refused", attempt, plural)
        kopf.error("Request attempt #3 failed; will retry: GET /api/v1/nodes -> forbidden")

    assert [vars(record)["reason"].rpartition(" -> ")[2] for record in caplog.records] == ["refused", "forbidden"]
