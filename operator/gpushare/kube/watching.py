"""Following a kind of object for ever: a list, then its changes, whatever happens to the server meanwhile.

Used by the agent for its GPUNode, and by whoever keeps a picture of a part of the cluster.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias

from gpushare.domain.manifests import Kind, Manifest
from gpushare.errors import ClusterRefused, ClusterUnavailable, Expired
from gpushare.kube.backoff import Backoff
from gpushare.kube.cluster import Cluster, EventType, WatchEvent


@dataclass(frozen=True, slots=True)
class Synced:
    """Everything that exists at this moment; what is not in it is gone."""

    items: tuple[Manifest, ...]


@dataclass(frozen=True, slots=True)
class Changed:
    """One object was added, modified or deleted."""

    event: WatchEvent


Change: TypeAlias = Synced | Changed


async def follow(
    cluster: Cluster,
    kind: Kind,
    namespace: str = "",
    *,
    labels: str = "",
    fields: str = "",
    log: logging.Logger,
) -> AsyncGenerator[Change, None]:
    """Yields `Synced` first and after each gap in the history, `Changed` in between. Ends only by being closed.

    An object may come more than once in the same state. A server that goes away, refuses, or has not loaded its
    permissions yet (403 in the first moments) is waited for, with growing pauses.
    """
    backoff = Backoff()
    version = ""
    while True:
        try:
            if not version:
                listed = await cluster.list(kind, namespace, labels=labels, fields=fields)
                yield Synced(listed.items)
                version = listed.resource_version
            stream = cluster.watch(kind, namespace, labels=labels, fields=fields, resource_version=version)
            async with _closing(stream) as events:
                async for event in events:
                    backoff.reset()
                    version = event.resource_version or version
                    if event.type is not EventType.BOOKMARK:
                        yield Changed(event)
        except Expired:
            version = ""
        except (ClusterUnavailable, ClusterRefused) as error:
            log.warning("watch interrupted", extra={"kind": kind.kind, "reason": str(error)})
        # Also after a quiet end: a server that ends each watch at once must not be asked in a tight loop.
        await asyncio.sleep(backoff.next())


@asynccontextmanager
async def _closing(events: AsyncIterator[WatchEvent]) -> AsyncIterator[AsyncIterator[WatchEvent]]:
    """Closes the stream, and with it the connection, at once rather than when the garbage collector comes by."""
    try:
        yield events
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()
