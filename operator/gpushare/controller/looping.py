"""One loop of passes. Everything that changes asks for a pass; the loop coalesces, runs one at a time, and backs off."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from gpushare.errors import GpuShareError
from gpushare.kube.backoff import Backoff

QUIET_SECONDS = 0.05
"""How long the first wish for a pass waits for company: an edit comes as a burst of events."""


class Loop:
    """Level-triggered: a pass sees everything that is, so it does not matter how many asked for it, or why."""

    def __init__(
        self,
        run_pass: Callable[[], Awaitable[None]],
        *,
        resync: Callable[[], Awaitable[None]],
        resync_seconds: float,
        log: logging.Logger,
    ) -> None:
        """`resync` runs before the first pass and every `resync_seconds`, to see what no watch tells."""
        self._run_pass = run_pass
        self._resync = resync
        self._resync_seconds = resync_seconds
        self._log = log
        self._due: float | None = None
        self._reasons: set[str] = set()
        self._asked = asyncio.Event()

    def request(self, reason: str, *, delay: float = QUIET_SECONDS) -> None:
        """Asks for a pass in `delay` seconds at the latest. The reason, one word, is for the log."""
        due = asyncio.get_running_loop().time() + delay
        if self._due is None or due < self._due:
            self._due = due
        self._reasons.add(reason)
        self._asked.set()

    async def run(self) -> None:
        """Runs passes until cancelled. What fails is tried again, with growing pauses."""
        backoff = Backoff(first=0.1, most=30.0)
        clock = asyncio.get_running_loop().time
        resync_at = clock()
        while True:
            try:
                if clock() >= resync_at:
                    await self._resync()
                    resync_at = clock() + self._resync_seconds
                    self.request("resync", delay=0)
                if await self._wait(resync_at):
                    await self._pass()
            except GpuShareError as error:
                self._log.warning("pass failed", extra={"reason": str(error)})
            except Exception:  # noqa: BLE001 - a defect of ours, or an object that nobody thought of, must stop nothing
                self._log.exception("pass failed")
            else:
                backoff.reset()
                continue
            self.request("retry", delay=backoff.next())

    async def _wait(self, resync_at: float) -> bool:
        """Waits for the next pass that is due. False: it is time to resync first."""
        clock = asyncio.get_running_loop().time
        while (now := clock()) < resync_at:
            if self._due is not None and self._due <= now:
                return True
            self._asked.clear()
            until = resync_at if self._due is None else min(self._due, resync_at)
            try:
                async with asyncio.timeout_at(until):
                    await self._asked.wait()
            except TimeoutError:
                continue
        return False

    async def _pass(self) -> None:
        reasons, self._reasons, self._due = sorted(self._reasons), set(), None
        started = asyncio.get_running_loop().time()
        await self._run_pass()
        seconds = round(asyncio.get_running_loop().time() - started, 3)
        self._log.debug("pass done", extra={"reasons": reasons, "seconds": seconds})
