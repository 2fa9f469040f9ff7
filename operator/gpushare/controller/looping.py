"""One loop of passes. Everything that changes asks for a pass; the loop coalesces, runs one at a time, and backs off."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from gpushare.errors import ClusterRefused, Conflict, GpuShareError
from gpushare.kube.backoff import Backoff

QUIET_SECONDS = 0.05
"""How long the first wish for a pass waits for company: an edit comes as a burst of events."""
_LONGEST_PAUSE_SECONDS = 30.0
_REFUSED_SECONDS = 1.0


@dataclass(slots=True)
class Passes:
    """What the loop has done so far."""

    synced: bool = False
    """Whether everything that exists has been seen once."""
    done: int = 0
    failed: int = 0
    seconds: float = 0.0
    """How long the last one took."""
    done_at: float = 0.0
    """When the last one was done of which nothing failed, in seconds since 1970; 0: none was."""
    began: float | None = None
    """When what runs now began, by the loop's clock; None while nothing runs."""


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
        self._resync_at = math.inf
        self._refused = Backoff(first=_REFUSED_SECONDS, most=_LONGEST_PAUSE_SECONDS)
        self._reasons: set[str] = set()
        self._asked = asyncio.Event()
        self.passes = Passes()

    def request(self, reason: str, *, delay: float = QUIET_SECONDS) -> None:
        """Asks for a pass in `delay` seconds at the latest. The reason, one word, is for the log."""
        due = asyncio.get_running_loop().time() + delay
        if self._due is None or due < self._due:
            self._due = due
        self._reasons.add(reason)
        self._asked.set()

    def request_resync(self, *, delay: float) -> None:
        """Asks for a resync in `delay` seconds at the latest."""
        self._resync_at = min(self._resync_at, asyncio.get_running_loop().time() + delay)
        self._asked.set()

    async def run(self) -> None:
        """Runs passes until cancelled. What fails is tried again, with growing pauses.

        No pass runs before a first resync has worked: with half of the cluster seen, it would remove the other half.
        """
        backoff = Backoff(first=0.1, most=_LONGEST_PAUSE_SECONDS)
        while True:
            if await self._try(self._resync):
                break
            await asyncio.sleep(backoff.next())
        self.passes.synced = True
        self.request("start", delay=0)
        self.request_resync(delay=self._resync_seconds)
        backoff.reset()
        while True:
            if not await self._wait():
                self._resync_at = math.inf
                worked = await self._try(self._resync)
                self.request_resync(delay=self._resync_seconds if worked else _LONGEST_PAUSE_SECONDS)
                self.request("resync", delay=0)
            elif await self._try(self._pass):
                self.passes.done += 1
                self.passes.done_at = time.time()
                backoff.reset()
                self._refused.reset()
            else:
                self.passes.failed += 1
                self.request("retry", delay=backoff.next())

    async def _try(self, act: Callable[[], Awaitable[None]]) -> bool:
        self.passes.began = asyncio.get_running_loop().time()
        try:
            await act()
        except Conflict as error:
            # Somebody was quicker, which the watch is about to tell.
            self._log.info("pass overtaken", extra={"reason": str(error)})
        except GpuShareError as error:
            self._log.warning("pass failed", extra={"reason": str(error)})
        except Exception:  # noqa: BLE001 - a defect of ours, or an object that nobody thought of, must stop nothing
            self._log.exception("pass failed")
        else:
            return True
        finally:
            self.passes.began = None
        return False

    async def _wait(self) -> bool:
        """Waits for the next pass that is due. False: it is time to resync first."""
        clock = asyncio.get_running_loop().time
        while (now := clock()) < self._resync_at:
            if self._due is not None and self._due <= now:
                return True
            self._asked.clear()
            until = self._resync_at if self._due is None else min(self._due, self._resync_at)
            try:
                async with asyncio.timeout_at(until):
                    await self._asked.wait()
            except TimeoutError:
                continue
        return False

    async def _pass(self) -> None:
        reasons, self._reasons, self._due = sorted(self._reasons), set(), None
        clock = asyncio.get_running_loop().time
        started = clock()
        try:
            await self._run_pass()
        except ClusterRefused:
            # It may be for want of a right, which a resync finds out; what is refused for good must not make it busy.
            self.request_resync(delay=self._refused.next())
            raise
        finally:
            self.passes.seconds = clock() - started
        self._log.debug("pass done", extra={"reasons": reasons, "seconds": round(self.passes.seconds, 3)})
