"""Keeps a part of the agent going, whatever goes wrong in it. Used for everything that runs for the agent's whole life."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

AFTER_FAILURE_SECONDS = 5.0


async def keep(work: Callable[[], Awaitable[None]], log: logging.Logger) -> None:
    """Runs something for ever; ends by being cancelled.

    Errors that are expected are dealt with inside. What comes out here is a defect: it is logged, the part starts again,
    and the others, above all those that give GPUs to pods, go on.
    """
    while True:
        try:
            await work()
        except Exception:
            log.exception("unexpected failure")
        await asyncio.sleep(AFTER_FAILURE_SECONDS)
