"""How the controller ends kopf, by kopf's own way of ending."""

from __future__ import annotations

import asyncio
import contextlib

from gpushare.controller import operating


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
