"""The loop of a controller: a queue of keys, each brought to where it should be by one function, again after failures."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine

from gpushare.errors import ClusterRefused, ClusterUnavailable, Conflict
from gpushare.kube.backoff import Backoff
from gpushare.sandbox.loops.caches import Caches, Key

_WORKERS = 4
_FIRST_RETRY_SECONDS = 0.02
_LAST_RETRY_SECONDS = 10.0


class Loop:
    """Calls `sync` for each key that was asked for: never twice at once for one key, never more often than needed.

    Requests for a key that is being worked on become one more call after it, so that a burst of changes costs two calls.
    """

    def __init__(self, name: str, sync: Callable[[Key], Awaitable[None]], log: logging.Logger) -> None:
        self._name = name
        self._sync = sync
        self._log = log
        self._queue: asyncio.Queue[Key] = asyncio.Queue()
        self._waiting: set[Key] = set()
        self._busy: set[Key] = set()
        self._again: set[Key] = set()
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._backoffs: dict[Key, Backoff] = {}

    def request(self, key: Key) -> None:
        """Asks for a call of `sync` as soon as possible."""
        if key in self._busy:
            self._again.add(key)
        elif key not in self._waiting:
            self._waiting.add(key)
            self._queue.put_nowait(key)

    def request_after(self, key: Key, seconds: float) -> None:
        """Asks for a call in `seconds`, unless an earlier one is due already."""
        clock = asyncio.get_running_loop()
        due = self._timers.get(key)
        if due is not None and due.when() > clock.time() + seconds:
            due.cancel()
            due = None
        if due is None:
            self._timers[key] = clock.call_later(seconds, self._ring, key)

    async def run(self, caches: Caches) -> None:
        """Works until cancelled, from the moment that the caches are filled."""
        await caches.wait()
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(_WORKERS):
                    group.create_task(self._work())
        finally:
            for timer in self._timers.values():
                timer.cancel()

    def _ring(self, key: Key) -> None:
        del self._timers[key]
        self.request(key)

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            self._waiting.discard(key)
            self._busy.add(key)
            try:
                await self._try(key)
            finally:
                self._busy.discard(key)
            if key in self._again:
                self._again.discard(key)
                self.request(key)

    async def _try(self, key: Key) -> None:
        try:
            await self._sync(key)
        except Conflict:
            # Somebody was faster; the watch brings what they wrote.
            self._retry(key)
        except (ClusterUnavailable, ClusterRefused) as error:
            self._log.warning("sync failed", extra={"loop": self._name, "key": key, "reason": str(error)})
            self._retry(key)
        except Exception:  # noqa: BLE001 - one object that we cannot deal with must not keep the others waiting
            self._log.exception("sync broke", extra={"loop": self._name, "key": key})
            self._retry(key)
        else:
            self._backoffs.pop(key, None)

    def _retry(self, key: Key) -> None:
        backoff = self._backoffs.setdefault(key, Backoff(first=_FIRST_RETRY_SECONDS, most=_LAST_RETRY_SECONDS))
        self.request_after(key, backoff.next())


async def run_until(stop: asyncio.Event, *jobs: Coroutine[None, None, None]) -> None:
    """Runs endless jobs side by side until `stop` is set. A job that breaks ends all and is raised."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(job) for job in jobs]
        await stop.wait()
        for task in tasks:
            task.cancel()
