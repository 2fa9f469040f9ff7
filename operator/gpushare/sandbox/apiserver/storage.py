"""The versioned store: objects, the log of their changes, and who listens to it. One asyncio loop, nothing on disk.

Stored objects are never changed in place: whoever writes brings a new one. So a read needs no copy, and one encoding
serves every client that asks for the object or watches it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import statuses
from gpushare.sandbox.apiserver.objects.jsonvalues import encode
from gpushare.sandbox.apiserver.resources import Key

HORIZON = 10_000
"""Changes that are kept. Whoever wants to go on from before them gets 410 and has to list again."""

ADDED, MODIFIED, DELETED, BOOKMARK, ERROR = "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"


class Record:
    """One object at one version, and its JSON, made when the first client wants it."""

    __slots__ = ("_body", "object", "version")

    def __init__(self, obj: Manifest, version: int) -> None:
        self.object = obj
        self.version = version
        self._body: bytes | None = None

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.object["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """The object's namespace; empty for those of the cluster."""
        return str(self.object["metadata"].get("namespace", ""))

    @property
    def body(self) -> bytes:
        """The object's JSON without kind and version, which differ between the forms in which it is shown."""
        if self._body is None:
            rest = {key: value for key, value in self.object.items() if key not in ("kind", "apiVersion")}
            self._body = encode(rest)
        return self._body


class Event:
    """One change. `previous` is what was there before; None for a new object."""

    __slots__ = ("key", "lines", "previous", "record", "type")

    def __init__(self, event_type: str, key: Key, record: Record, previous: Record | None) -> None:
        self.type = event_type
        self.key = key
        self.record = record
        self.previous = previous
        self.lines: dict[tuple[str, bytes], bytes] = {}
        """Encoded lines by event type and prefix, shared by all watches that show the event in that form."""

    @property
    def version(self) -> int:
        """The version of the store after this change."""
        return self.record.version


class Subscription:
    """The changes of one kind that a watch has not sent yet."""

    def __init__(self, key: Key, wants: Callable[[Event], bool]) -> None:
        self.key = key
        self.wants = wants
        """Whether a change is for this watch, which then need not wake for the others."""
        self.closed = False
        """Set when the server stops, or when the client reads so slowly that it must list again."""
        self._events: deque[Event] = deque()
        self._wake = asyncio.Event()

    def push(self, event: Event) -> None:
        """Called by the store for each change."""
        self._events.append(event)
        if len(self._events) > HORIZON:
            self.closed = True
        self._wake.set()

    def close(self) -> None:
        """Ends the watch."""
        self.closed = True
        self._wake.set()

    async def take(self, seconds: float) -> list[Event]:
        """All changes since the last call; waits for one. Empty after `seconds` without any, or when closed."""
        if not self._events and not self.closed:
            self._wake.clear()
            # A change may come in the very moment in which the time is over: whoever is told the version is told of it too.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._wake.wait()
        taken = list(self._events)
        self._events.clear()
        return [] if self.closed else taken


class Store:
    """All objects of all kinds, under one version that grows with each change."""

    def __init__(self) -> None:
        self.version = 1
        self._oldest = 1
        self.listeners: list[Callable[[Event], None]] = []
        """Called at once for each change, before any watch has seen it: registry, authorization, garbage collection."""
        self._objects: defaultdict[Key, dict[tuple[str, str], Record]] = defaultdict(dict)
        self._log: deque[Event] = deque(maxlen=HORIZON)
        self._subscriptions: defaultdict[Key, set[Subscription]] = defaultdict(set)

    def get(self, key: Key, namespace: str, name: str) -> Record | None:
        """One object as it is now."""
        return self._objects[key].get((namespace, name))

    def objects(self, key: Key, namespace: str | None = None) -> list[Record]:
        """All objects of a kind as they are now, ordered by namespace and name; None means all namespaces."""
        objects = self._objects[key]
        return [objects[at] for at in sorted(objects if namespace is None else _within(objects, namespace))]

    def put(self, key: Key, obj: Manifest) -> Record:
        """Stores a new object, or a new state of one, which the caller does not touch any more."""
        metadata = obj["metadata"]
        at = (metadata.get("namespace", ""), metadata["name"])
        previous = self._objects[key].get(at)
        record = self._next(obj)
        self._objects[key][at] = record
        self._publish(Event(MODIFIED if previous else ADDED, key, record, previous))
        return record

    def remove(self, key: Key, obj: Manifest) -> Record:
        """Takes an object away; the record shows it as it was at the end, with the version of its deletion."""
        metadata = obj["metadata"]
        previous = self._objects[key].pop((metadata.get("namespace", ""), metadata["name"]))
        record = self._next({**obj, "metadata": dict(metadata)})
        self._publish(Event(DELETED, key, record, previous))
        return record

    def forget(self) -> None:
        """Forgets how everything came about, as a server that has just started: older versions get 410."""
        self._log.clear()
        self._oldest = self.version

    def since(self, key: Key, version: int) -> list[Event]:
        """Changes of a kind after a version. Raises `ApiError` 410 when some of them are no longer known."""
        if version < self._oldest:
            raise statuses.expired(f"too old resource version: {version} ({self._oldest})")
        return [event for event in self._after(version) if event.key == key]

    def objects_at(self, key: Key, namespace: str | None, version: int) -> list[Record]:
        """All objects of a kind as they were at an earlier version. Raises `ApiError` 410 as `since`."""
        objects = dict(self._objects[key])
        for event in reversed(self.since(key, version)):
            at = (event.record.namespace, event.record.name)
            if event.previous is None:
                del objects[at]
            else:
                objects[at] = event.previous
        return [objects[at] for at in sorted(objects if namespace is None else _within(objects, namespace))]

    def subscribe(self, key: Key, wants: Callable[[Event], bool]) -> Subscription:
        """Follows those changes of a kind that `wants`. The caller gives the subscription back to `unsubscribe`."""
        subscription = Subscription(key, wants)
        self._subscriptions[key].add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Ends a subscription."""
        self._subscriptions[subscription.key].discard(subscription)

    def close_subscriptions(self) -> None:
        """Ends all watches, as a server that restarts does."""
        for subscriptions in self._subscriptions.values():
            for subscription in subscriptions:
                subscription.close()

    def _next(self, obj: Manifest) -> Record:
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        return Record(obj, self.version)

    def _publish(self, event: Event) -> None:
        if len(self._log) == HORIZON:
            self._oldest = self._log[0].version
        self._log.append(event)
        for listener in self.listeners:
            listener(event)
        for subscription in self._subscriptions[event.key]:
            if subscription.wants(event):
                subscription.push(event)

    def _after(self, version: int) -> Iterator[Event]:
        newer: list[Event] = []
        for event in reversed(self._log):
            if event.version <= version:
                break
            newer.append(event)
        return reversed(newer)


def _within(places: Iterable[tuple[str, str]], namespace: str) -> Iterator[tuple[str, str]]:
    # Before they are sorted: a namespace has few of all pods.
    return (at for at in places if at[0] == namespace)
