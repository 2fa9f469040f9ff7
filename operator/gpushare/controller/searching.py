"""Looking for a ConfigMap in all namespaces, while the one that a policy names is missing in ours: people create it elsewhere.

Made by `reconciling`, which says what to look for; `running` keeps it going. A watch, and only of that name, so that a
message is right as soon as somebody creates, moves or deletes it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from gpushare.domain import manifests
from gpushare.domain.manifests import ObjectKey
from gpushare.kube import watching
from gpushare.kube.cluster import Cluster, EventType
from gpushare.kube.watching import Change, Synced

_FIRST_SECONDS = 2.0
"""How long whoever asks waits for the first list: better than two messages, of which the first is half of the truth."""


class ConfigMapSearch:
    """Knows in which namespaces a ConfigMap of one name is."""

    def __init__(self, cluster: Cluster, namespace: str, on_change: Callable[[], None], log: logging.Logger) -> None:
        """`namespace` is ours, which does not count; `on_change` is called when `found` has changed."""
        self._cluster = cluster
        self._namespace = namespace
        self._on_change = on_change
        self._log = log
        self._name = ""
        self._asked = asyncio.Event()
        self._listed = asyncio.Event()
        self.found: frozenset[ObjectKey] = frozenset()
        """Where it is, but for our own namespace: that it is there is told by another watch, which may be slower."""

    async def look_for(self, name: str) -> None:
        """Looks for that name from now on, for none where it is empty.

        Returns when `found` is right, or, where the server says nothing, after a while: but for that only once a name.
        """
        if name == self._name:
            return
        self._name, self.found = name, frozenset()
        self._listed.clear()
        self._asked.set()
        if name:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FIRST_SECONDS):
                    await self._listed.wait()

    async def run(self) -> None:
        """Looks until cancelled."""
        while True:
            self._asked.clear()
            looking = asyncio.create_task(self._look(self._name)) if self._name else None
            try:
                await self._asked.wait()
            finally:
                if looking is not None:
                    looking.cancel()
                    await asyncio.wait({looking})

    async def _look(self, name: str) -> None:
        follow = watching.follow(self._cluster, manifests.CONFIG_MAP, fields=f"metadata.name={name}", log=self._log)
        async with contextlib.aclosing(follow) as changes:
            async for change in changes:
                before, self.found = self.found, self._after(change)
                if self._listed.is_set() and before != self.found:
                    self._on_change()
                self._listed.set()

    def _after(self, change: Change) -> frozenset[ObjectKey]:
        if isinstance(change, Synced):
            found = frozenset(map(manifests.key_of, change.items))
        else:
            key = manifests.key_of(change.event.object)
            found = self.found - {key} if change.event.type is EventType.DELETED else self.found | {key}
        return frozenset(key for key in found if key.namespace != self._namespace)
