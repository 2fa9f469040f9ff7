"""Posting Events in the forms that kubectl shows. Used by controller, scheduler and agent.

Posted in the background: they are for people, and no work waits for them or fails with them.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from gpushare.domain import manifests
from gpushare.domain.events import EventNote
from gpushare.domain.manifests import Manifest
from gpushare.errors import Conflict
from gpushare.kube import applying
from gpushare.kube.cluster import Cluster

_REMEMBERED = 4096
"""Events that are known to exist already, with their counts."""
_WAITING = 10_000
_LONGEST_MESSAGE = 1024
_LONGEST_NAME = 200
_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Source:
    """Who says it."""

    component: str
    """Its field manager."""
    instance: str
    """Its Deployment."""


class EventPoster:
    """Posts notes, one after the other; the same note again counts up instead of standing there twice."""

    def __init__(self, cluster: Cluster, *, source: Source, now: Callable[[], str], log: logging.Logger) -> None:
        self._cluster = cluster
        self._source = source
        self._now = now
        self._log = log
        self._waiting: deque[EventNote] = deque(maxlen=_WAITING)
        self._asked = asyncio.Event()
        self._counts: OrderedDict[tuple[str, str], int] = OrderedDict()

    def post(self, notes: Iterable[EventNote]) -> None:
        """Takes notes to be posted soon. Beyond some thousands, the oldest are dropped."""
        self._waiting.extend(notes)
        if self._waiting:
            self._asked.set()

    async def run(self) -> None:
        """Posts until cancelled. What cannot be posted is logged, not tried again."""
        while True:
            await self._asked.wait()
            self._asked.clear()
            batch = tuple(self._waiting)
            self._waiting.clear()
            failures = await applying.each(batch, self._post, concurrency=_AT_ONCE)
            if failures:
                self._log.warning("events not posted", extra={"count": len(failures), "reason": str(failures[0])})

    async def _post(self, note: EventNote) -> None:
        manifest = build_event(note, self._source, self._now())
        key = manifest["metadata"]["namespace"], manifest["metadata"]["name"]
        if key not in self._counts:
            try:
                await self._cluster.create(manifest)
            except Conflict:
                # Posted by an earlier life of ours.
                stored = await self._cluster.get(manifests.EVENT, key[1], key[0])
                self._remember(key, int((stored or {}).get("count") or 0))
            else:
                self._remember(key, 1)
                return
        await self._count_up(key, manifest)

    async def _count_up(self, key: tuple[str, str], manifest: Manifest) -> None:
        count = self._counts[key] + 1
        body = {"count": count, "lastTimestamp": manifest["lastTimestamp"]}
        if await self._cluster.patch(manifests.EVENT, key[1], body, key[0]) is None:
            # Events last an hour; this one has gone.
            await self._cluster.create(manifest)
            count = 1
        self._remember(key, count)

    def _remember(self, key: tuple[str, str], count: int) -> None:
        self._counts[key] = count
        self._counts.move_to_end(key)
        if len(self._counts) > _REMEMBERED:
            self._counts.popitem(last=False)


def build_event(note: EventNote, source: Source, now: str) -> Manifest:
    """The Event of a note, named after what it says, so that the same note finds it again.

    `involvedObject` has a namespace only where the object has one: `kubectl describe` of a cluster-scoped object finds an
    Event by the uid and the empty namespace, and the API server accepts that in `default` only.
    """
    regarding = note.regarding
    involved: dict[str, Any] = {
        "apiVersion": regarding.kind.api_version,
        "kind": regarding.kind.kind,
        "name": regarding.name,
    }
    if regarding.namespace:
        involved["namespace"] = regarding.namespace
    if note.uid:
        involved["uid"] = note.uid
    message = note.message[:_LONGEST_MESSAGE]
    identity = "\0".join((str(regarding), note.uid, note.reason, note.type, message))
    return {
        "apiVersion": manifests.EVENT.api_version,
        "kind": manifests.EVENT.kind,
        "metadata": {
            "name": f"{regarding.name[:_LONGEST_NAME]}.{hashlib.sha256(identity.encode()).hexdigest()[:16]}",
            "namespace": note.namespace,
        },
        "involvedObject": involved,
        "reason": note.reason,
        "message": message,
        "type": note.type.value,
        "source": {"component": source.component},
        "reportingComponent": source.component,
        "reportingInstance": source.instance,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
