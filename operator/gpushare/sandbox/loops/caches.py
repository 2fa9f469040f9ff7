"""Watch caches: what a controller knows of the cluster, with its own writes put in at once.

Controllers decide from these and never ask the API server. Because an own write is in the cache before the watch brings
it, a controller never creates the same pod twice: what the real ones need their expectations for.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing
from typing import TypeAlias

from gpushare.domain.manifests import Kind, Manifest
from gpushare.kube import watching
from gpushare.kube.cluster import Cluster, EventType
from gpushare.kube.watching import Change, Synced
from gpushare.sandbox.apiserver.objects import times

Key: TypeAlias = tuple[str, str]
"""Namespace (empty for cluster-scoped kinds) and name."""
Listener: TypeAlias = Callable[[Manifest | None, Manifest | None], None]
"""Called with an object before and after a change; None before it came, None after it went."""

_TOMBSTONES = 1000


def key_of(manifest: Manifest) -> Key:
    """Under which key a cache has an object."""
    metadata = manifest["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def is_terminating(manifest: Manifest) -> bool:
    """Whether somebody has asked for an object to go."""
    return bool(manifest["metadata"].get("deletionTimestamp"))


class Cache:
    """All objects of one kind."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.synced = asyncio.Event()
        """Set once the first list is in; before that, what is not here may still exist."""
        self._objects: dict[Key, Manifest] = {}
        self._listeners: list[Listener] = []
        self._gone: dict[str, None] = {}

    def __iter__(self) -> Iterator[Manifest]:
        return iter(tuple(self._objects.values()))

    def get(self, key: Key) -> Manifest | None:
        """One object. It is shared: whoever wants to change it copies it first."""
        return self._objects.get(key)

    def listen(self, listener: Listener) -> None:
        """Has `listener` called at every change from now on."""
        self._listeners.append(listener)

    def put(self, manifest: Manifest) -> None:
        """Takes in what the server answered to an own write, unless the watch has shown something newer already."""
        before = self._objects.get(key_of(manifest))
        if manifest["metadata"]["uid"] in self._gone or (before is not None and _version(before) >= _version(manifest)):
            return
        self._objects[key_of(manifest)] = manifest
        self._tell(before, manifest)

    def mark_terminating(self, manifest: Manifest) -> None:
        """Remembers that an own delete of this object was accepted, until the watch shows what became of it."""
        known = self._objects.get(key_of(manifest))
        if known is not None and _version(known) == _version(manifest) and not is_terminating(known):
            metadata = {**known["metadata"], "deletionTimestamp": times.seconds_text(time.time())}
            self._objects[key_of(manifest)] = {**known, "metadata": metadata}

    def see(self, change: Change) -> None:
        """Takes in what a watch shows."""
        if isinstance(change, Synced):
            self._replace(change.items)
        elif change.event.type is EventType.DELETED:
            self._drop(change.event.object)
        else:
            self.put(change.event.object)

    def _replace(self, items: tuple[Manifest, ...]) -> None:
        present = {item["metadata"]["uid"] for item in items}
        for known in tuple(self._objects.values()):
            if known["metadata"]["uid"] not in present:
                self._drop(known)
        for item in items:
            self.put(item)
        self.synced.set()

    def _drop(self, manifest: Manifest) -> None:
        # The answer to an own write may come after the watch has shown that the object is gone again.
        self._gone[manifest["metadata"]["uid"]] = None
        while len(self._gone) > _TOMBSTONES:
            del self._gone[next(iter(self._gone))]
        known = self._objects.get(key_of(manifest))
        if known is not None and known["metadata"]["uid"] == manifest["metadata"]["uid"]:
            del self._objects[key_of(manifest)]
            self._tell(known, None)

    def _tell(self, before: Manifest | None, after: Manifest | None) -> None:
        for listener in self._listeners:
            listener(before, after)


class Caches:
    """The caches of one process, one watch a kind however many controllers look at it."""

    def __init__(self, cluster: Cluster, log: logging.Logger) -> None:
        self._cluster = cluster
        self._log = log
        self._caches: dict[Kind, Cache] = {}

    def of(self, kind: Kind) -> Cache:
        """The cache of a kind. All have to be asked for before `run`."""
        return self._caches.setdefault(kind, Cache(kind))

    async def run(self) -> None:
        """Follows all kinds until cancelled."""
        async with asyncio.TaskGroup() as group:
            for cache in self._caches.values():
                group.create_task(self._follow(cache))

    async def wait(self) -> None:
        """Returns once every cache has had its first list."""
        for cache in self._caches.values():
            await cache.synced.wait()

    async def _follow(self, cache: Cache) -> None:
        async with aclosing(watching.follow(self._cluster, cache.kind, log=self._log)) as changes:
            async for change in changes:
                cache.see(change)


def _version(manifest: Manifest) -> int:
    return int(manifest["metadata"]["resourceVersion"])
