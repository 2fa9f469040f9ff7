"""Writes events in the background, so that no controller waits for what only people read."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Protocol

from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.errors import ClusterRefused, ClusterUnavailable, Conflict
from gpushare.kube.cluster import Cluster
from gpushare.sandbox.loops.events import Create, Event, Write

_PENDING_MAX = 1000


class Merging(Protocol):
    """`CountedEvents` or `SerialEvents`."""

    def build_write(self, event: Event, now: float) -> Write | None:
        """What to write for this event now; None to stay silent."""
        ...


class Recorder:
    """The voice of one controller."""

    def __init__(self, cluster: Cluster, merging: Merging, log: logging.Logger) -> None:
        self._cluster = cluster
        self._merging = merging
        self._log = log
        self._writes: asyncio.Queue[Write] = asyncio.Queue()

    def normal(self, about: Manifest, reason: str, message: str, *, action: str = "") -> None:
        """Says that something went as it should."""
        self._record(Event(about=about, type="Normal", reason=reason, message=message, action=action))

    def warning(self, about: Manifest, reason: str, message: str, *, action: str = "") -> None:
        """Says that something needs attention."""
        self._record(Event(about=about, type="Warning", reason=reason, message=message, action=action))

    async def run(self) -> None:
        """Writes, in the order of recording, until cancelled. An event that cannot be written is lost, as on a real cluster."""
        while True:
            write = await self._writes.get()
            try:
                await self._write(write)
            except (Conflict, ClusterRefused, ClusterUnavailable) as error:
                self._log.info("event lost", extra={"reason": str(error)})

    def _record(self, event: Event) -> None:
        # Merged at once, so that the times are those of what happened and not of the write.
        write = self._merging.build_write(event, time.time())
        if write is not None and self._writes.qsize() < _PENDING_MAX:
            self._writes.put_nowait(write)

    async def _write(self, write: Write) -> None:
        if isinstance(write, Create):
            await self._cluster.create(write.manifest)
        else:
            await self._cluster.patch(manifests.EVENT, write.name, write.body, write.namespace)
