"""Watches: what is there, what changes, bookmarks in between, and a clean end.

Every watch of a kind shares the encoding of an event, unless it asked for Tables or metadata.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import field_errors, statuses
from gpushare.sandbox.apiserver.objects import selectors
from gpushare.sandbox.apiserver.objects.jsonvalues import encode
from gpushare.sandbox.apiserver.objects.selectors import Selector
from gpushare.sandbox.apiserver.protocol import presenting
from gpushare.sandbox.apiserver.requests import Request, Stream
from gpushare.sandbox.apiserver.resources import Resource
from gpushare.sandbox.apiserver.storage import (
    ADDED,
    BOOKMARK,
    DELETED,
    ERROR,
    MODIFIED,
    Event,
    Record,
    Store,
    Subscription,
)

_BOOKMARK_SECONDS = 60.0
_LEAST_SECONDS = 1800.0
_LAST_BOOKMARK_SECONDS = 0.25
"""How long before its end a watch sends its last bookmark, so that the client goes on from a fresh version."""
_INITIAL_END: Mapping[str, str] = {"k8s.io/initial-events-end": "true"}


def watch(store: Store, resource: Resource, namespace: str | None, request: Request) -> Stream:
    """Starts a watch. Raises `ApiError` for a request that makes no sense; one that comes too late is told in the stream."""
    _check_initial_events(request)
    start = _start(request)
    following = _Watch(
        store=store,
        resource=resource,
        namespace=namespace,
        request=request,
        selector=selectors.parse(resource, request.query),
        as_table=presenting.wants_table(request),
        seconds=request.number("timeoutSeconds") or _LEAST_SECONDS * random.uniform(1, 2),  # noqa: S311 - no secret
    )
    return Stream(following.lines(start))


def _check_initial_events(request: Request) -> None:
    if request.flag("sendInitialEvents") is None:
        return
    if request.query.get("resourceVersionMatch") != "NotOlderThan":
        why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        cause = field_errors.forbidden("resourceVersionMatch", why)
        raise statuses.invalid("ListOptions", "meta.k8s.io", "", [cause])


def _start(request: Request) -> int:
    text = request.query.get("resourceVersion", "") or "0"
    if not text.isdecimal():
        why = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        raise statuses.ApiError(500, "", why)
    return int(text)


@dataclass(slots=True, kw_only=True)
class _Watch:
    store: Store
    resource: Resource
    namespace: str | None
    request: Request
    selector: Selector
    as_table: bool
    seconds: float
    columns_sent: bool = field(default=False, init=False)

    async def lines(self, start: int) -> AsyncGenerator[bytes, None]:
        """All that the client reads, in pieces of whole lines."""
        subscription, seen = self.store.subscribe(self.resource.key, self._wants), self.store.version
        try:
            # Nothing is awaited between the subscription and the look at the store, so no change can fall in between.
            try:
                yield b"".join(self._first(start))
            except statuses.ApiError as error:
                yield _line(ERROR, encode(error.status()))
                return
            async for lines in self._rest(subscription, max(start, seen)):
                yield lines
        finally:
            self.store.unsubscribe(subscription)

    def _first(self, start: int) -> Iterator[bytes]:
        wanted = self.request.flag("sendInitialEvents")
        if wanted or (wanted is None and not start):
            for record in self.store.objects(self.resource.key, self.namespace):
                if self.selector.matches(record.object):
                    yield self._show(ADDED, record)
            if wanted and self._bookmarks:
                yield self._bookmark(_INITIAL_END)
        elif start:
            for event in self.store.since(self.resource.key, start):
                yield from self._translate(event)

    async def _rest(self, subscription: Subscription, start: int) -> AsyncGenerator[bytes, None]:
        now = time.monotonic()
        end = now + self.seconds
        bookmark_at = now + min(_BOOKMARK_SECONDS, max(self.seconds - _LAST_BOOKMARK_SECONDS, 0))
        while now < end and not subscription.closed:
            # A watch from the future stays silent until the store gets there.
            events = [event for event in await subscription.take(min(end, bookmark_at) - now) if event.version > start]
            lines = [line for event in events for line in self._translate(event)]
            now = time.monotonic()
            if now >= bookmark_at:
                last = end - _LAST_BOOKMARK_SECONDS
                bookmark_at = min(now + _BOOKMARK_SECONDS, last) if now < last else math.inf
                lines += [self._bookmark()] if self._bookmarks else []
            if lines:
                yield b"".join(lines)

    def _wants(self, event: Event) -> bool:
        record, previous = event.record, event.previous
        if self.namespace is not None and record.namespace != self.namespace:
            return False
        return self.selector.matches(record.object) or (previous is not None and self.selector.matches(previous.object))

    def _translate(self, event: Event) -> Iterable[bytes]:
        """A change as this watch sees it: what enters the selection is ADDED, what leaves it is DELETED."""
        record = event.record
        if self.namespace is not None and record.namespace != self.namespace:
            return
        was = event.previous is not None and self.selector.matches(event.previous.object)
        now = event.type != DELETED and self.selector.matches(record.object)
        if now:
            yield self._shared(MODIFIED if was else ADDED, event)
        elif was and event.previous is not None:
            if event.type == DELETED:
                yield self._shared(DELETED, event)
            else:
                yield self._show(DELETED, _at_version(event.previous, record))

    def _shared(self, event_type: str, event: Event) -> bytes:
        if self.as_table or self.resource.view:
            return self._show(event_type, event.record)
        key = (event_type, presenting.prefix(self.resource))
        line = event.lines.get(key)
        if line is None:
            line = event.lines[key] = self._show(event_type, event.record)
        return line

    def _show(self, event_type: str, record: Record) -> bytes:
        if self.as_table:
            return _line(event_type, encode(self._table([record], {"resourceVersion": str(record.version)})))
        return _line(event_type, presenting.encoded(self.resource, record))

    def _table(self, records: list[Record], metadata: Mapping[str, Any]) -> Manifest:
        """A Table that names its columns only the first time."""
        table = presenting.table(self.resource, records, self.request, metadata)
        sent, self.columns_sent = self.columns_sent, True
        return {**table, "columnDefinitions": None} if sent else table

    @property
    def _bookmarks(self) -> bool:
        return bool(self.request.flag("allowWatchBookmarks"))

    def _bookmark(self, annotations: Mapping[str, str] | None = None) -> bytes:
        metadata: dict[str, Any] = {"resourceVersion": str(self.store.version), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = dict(annotations)
        if self.as_table:
            return _line(BOOKMARK, encode(self._table([], metadata)))
        shown = {"kind": self.resource.kind, "apiVersion": self.resource.api_version, "metadata": metadata}
        return _line(BOOKMARK, encode(shown))


def _line(event_type: str, obj: bytes) -> bytes:
    return b'{"type":"' + event_type.encode() + b'","object":' + obj + b"}\n"


def _at_version(record: Record, changed: Record) -> Record:
    """What was selected, at the version in which it no longer is."""
    metadata = {**record.object["metadata"], "resourceVersion": str(changed.version)}
    return Record({**record.object, "metadata": metadata}, changed.version)
