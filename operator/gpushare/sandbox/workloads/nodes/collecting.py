"""Removes pods of nodes that are gone: no kubelet will ever end them. Started by `workloads.app`."""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Sequence

from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.kube.cluster import Cluster
from gpushare.sandbox.loops import caches as caching
from gpushare.sandbox.loops.caches import Caches, Key
from gpushare.sandbox.loops.looping import Loop

_PATIENCE_SECONDS = 40.0
"""How long a node must be gone, as in the real controller: one that is only registered anew keeps its pods."""


class Leftovers:
    """Looks at the pods of a node some time after the node has gone."""

    def __init__(self, cluster: Cluster, caches: Caches, log: logging.Logger) -> None:
        self._cluster = cluster
        self._caches = caches
        self._nodes = caches.of(manifests.NODE)
        self._pods = caches.of(manifests.POD)
        self._loop = Loop("pod-collection", self._sync, log)
        self._nodes.listen(self._see_node)
        self._pods.listen(self._see_pod)

    def jobs(self) -> Sequence[Coroutine[None, None, None]]:
        """What has to run."""
        return (self._loop.run(self._caches),)

    async def _sync(self, key: Key) -> None:
        """The key is a node's."""
        if self._nodes.get(key) is not None:
            return
        for pod in self._pods:
            if pod["spec"].get("nodeName") == key[1]:
                metadata = pod["metadata"]
                await self._cluster.delete(
                    manifests.POD, metadata["name"], metadata["namespace"], uid=metadata["uid"], grace_seconds=0
                )

    def _see_node(self, _before: Manifest | None, after: Manifest | None) -> None:
        if after is None and _before is not None:
            self._loop.request_after(caching.key_of(_before), _PATIENCE_SECONDS)

    def _see_pod(self, _before: Manifest | None, after: Manifest | None) -> None:
        name = after["spec"].get("nodeName") if after is not None else None
        if name and self._nodes.synced.is_set() and self._nodes.get(("", name)) is None:
            self._loop.request_after(("", name), _PATIENCE_SECONDS)
