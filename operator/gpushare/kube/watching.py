"""Following a kind of object for ever: a list, then its changes, whatever happens to the server meanwhile.

Used by the agent for its GPUNode, and by whoever keeps a picture of a part of the cluster.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeAlias

from gpushare.domain.manifests import Kind, Manifest
from gpushare.errors import ClusterRefused, ClusterUnavailable, Expired
from gpushare.kube.backoff import Backoff
from gpushare.kube.cluster import Cluster, EventType, Trim, WatchEvent
from gpushare.kube.complaints import Complaints


@dataclass(frozen=True, slots=True)
class Synced:
    """Everything that exists at this moment; what is not in it is gone."""

    items: tuple[Manifest, ...]


@dataclass(frozen=True, slots=True)
class Changed:
    """One object was added, modified or deleted."""

    event: WatchEvent


Change: TypeAlias = Synced | Changed


async def follow(  # noqa: PLR0913 - those of `Cluster.list`, and a log
    cluster: Cluster,
    kind: Kind,
    namespace: str = "",
    *,
    labels: str = "",
    fields: str = "",
    trim: Trim | None = None,
    log: logging.Logger,
) -> AsyncGenerator[Change, None]:
    """Yields `Synced` first and after each gap in the history, `Changed` in between. Ends only by being closed.

    An object may come more than once in the same state; one of which `trim` keeps nothing does not come at all. A server
    that goes away, refuses, or has not loaded its permissions yet (403 in the first moments) is waited for, with growing
    pauses.
    """
    backoff, complaints = Backoff(), Complaints(asyncio.get_running_loop().time)
    version = ""
    while True:
        try:
            if not version:
                listed = await cluster.list(kind, namespace, labels=labels, fields=fields, trim=trim)
                yield Synced(listed.items)
                version = listed.resource_version
            stream = cluster.watch(kind, namespace, labels=labels, fields=fields, resource_version=version)
            # Closed, and with it the connection, at once rather than when the garbage collector comes by.
            async with aclosing(stream) as events:
                async for event in events:
                    backoff.reset()
                    complaints.end()
                    version = event.resource_version or version
                    if event.type is not EventType.BOOKMARK and (kept := _trimmed(event, trim)) is not None:
                        yield Changed(kept)
        except Expired:
            version = ""
        except (ClusterUnavailable, ClusterRefused) as error:
            if complaints.is_news(str(error)):
                log.warning("watch interrupted", extra={"kind": kind.kind, "reason": str(error)})
        # Also after a quiet end: a server that ends each watch at once must not be asked in a tight loop.
        await asyncio.sleep(backoff.next())


def _trimmed(event: WatchEvent, trim: Trim | None) -> WatchEvent | None:
    if trim is None:
        return event
    kept = trim(event.object)
    return WatchEvent(event.type, kept) if kept is not None else None
