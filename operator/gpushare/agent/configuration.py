"""Where the configuration of a node comes from: a file, or its GPUNode. Run by the agent."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gpushare.agent.deciding import Assignment
from gpushare.errors import Problem

if TYPE_CHECKING:
    # An agent that follows a file loads nothing of a cluster.
    from gpushare.domain.gpunode import GPUNode
    from gpushare.domain.manifests import Manifest
    from gpushare.kube.cluster import Cluster

SETTLE_SECONDS = 0.02
"""A changed text counts once it has stayed the same for so long."""
FILE_POLL_SECONDS = 1.0
"""A ConfigMap volume changes by swapped links, which no watch on a file sees."""


def read_file(path: Path, name: str = "") -> Assignment:
    """The configuration in a file; one that cannot be read is a problem of the assignment.

    `name`: what people call it, where that is not the path.
    """
    name = name or str(path)
    try:
        return Assignment(content=path.read_text(encoding="utf-8"), name=name)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        return Assignment(name=name, problem=Problem(path=name, message=f"cannot be read: {reason}"))


async def follow_file(path: Path, tell: Callable[[Assignment], None], *, name: str = "") -> None:
    """Tells what is in a file, and again whenever it is another text. Never ends."""
    known = read_file(path, name)
    tell(known)
    while True:
        await asyncio.sleep(FILE_POLL_SECONDS)
        found = await _read_settled(path, known)
        if found != known:
            known = found
            tell(found)


async def _read_settled(path: Path, known: Assignment) -> Assignment:
    """Whoever writes a file in place empties it first, and an empty one is a configuration too."""
    found = read_file(path, known.name)
    while found != known:
        await asyncio.sleep(SETTLE_SECONDS)
        before, found = found, read_file(path, known.name)
        if found == before:
            break
    return found


def assignment_of(node: GPUNode) -> Assignment | None:
    """What a GPUNode assigns; None where the controller has not assigned anything yet."""
    if node.config is None:
        return None
    return Assignment(
        content=node.config.content,
        mig_strategy=node.config.mig_strategy,
        name=node.config.name,
        generation=node.generation,
    )


async def follow_node(
    cluster: Cluster, name: str, tell: Callable[[Manifest | None], None], log: logging.Logger
) -> None:
    """Tells the GPUNode of a node whenever it changes; None: there is none. Never ends."""
    from gpushare.domain import manifests
    from gpushare.kube import watching
    from gpushare.kube.cluster import EventType

    changes = watching.follow(cluster, manifests.GPU_NODE, fields=f"metadata.name={name}", log=log)
    try:
        async for change in changes:
            if isinstance(change, watching.Synced):
                tell(change.items[0] if change.items else None)
            elif change.event.type is EventType.DELETED:
                tell(None)
            else:
                tell(change.event.object)
    finally:
        await changes.aclose()
