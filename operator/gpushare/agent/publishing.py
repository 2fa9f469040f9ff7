"""Writes the status of this node's GPUNode. Run by the agent beside everything else, which never waits for it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from gpushare import names
from gpushare.agent import clock
from gpushare.domain import manifests
from gpushare.domain.conditions import Condition, with_times
from gpushare.domain.gpunode import GPUNode
from gpushare.errors import ClusterRefused, ClusterUnavailable, Conflict
from gpushare.kube.backoff import Backoff
from gpushare.kube.cluster import Cluster

INTERVAL_SECONDS: Final = 1.0
REFUSED_SECONDS: Final = 30.0


class Publisher:
    """Applies the newest status, at most once a second, and only when it is another than the last one."""

    def __init__(self, cluster: Cluster, node: str, log: logging.Logger) -> None:
        self._cluster = cluster
        self._node = node
        self._log = log
        self._status: dict[str, Any] | None = None
        self._published: dict[str, Any] | None = None
        self._uid = ""
        self._conditions: tuple[Condition, ...] = ()
        """As last written or seen; they keep the times of their changes."""
        self._changed = asyncio.Event()
        self._urgent = asyncio.Event()
        self._backoff = Backoff(first=0.2, most=REFUSED_SECONDS)

    def offer(self, status: dict[str, Any], *, urgent: bool) -> None:
        """Makes this the status to publish. `urgent`: at once; somebody waits for the result of a configuration."""
        if status == self._status:
            return
        self._status = status
        self._changed.set()
        if urgent:
            self._urgent.set()

    def see(self, node: GPUNode | None) -> None:
        """Takes note of the GPUNode as the API server has it; None: it is not there."""
        uid = node.uid if node is not None else ""
        if uid == self._uid:
            return
        self._uid = uid
        if node is not None:
            # Another object than before, or the first: it has to be told everything.
            self._conditions = node.status.conditions
            self._published = None
            self._changed.set()
            self._urgent.set()

    async def run(self) -> None:
        """Publishes for ever; ends by being cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            self._urgent.clear()
            pause = await self._publish()
            if pause:
                try:
                    async with asyncio.timeout(pause):
                        await self._urgent.wait()
                except TimeoutError:
                    pass

    async def _publish(self) -> float:
        """Writes if there is anything to write. Returns the seconds to wait before the next one."""
        status = self._status
        if status is None or not self._uid or status == self._published:
            return 0
        try:
            await self._write(status)
        except (ClusterUnavailable, ClusterRefused, Conflict) as error:
            self._log.warning("status not published", extra={"reason": str(error)})
            self._changed.set()
            return REFUSED_SECONDS if isinstance(error, ClusterRefused) else self._backoff.next()
        self._backoff.reset()
        self._published = status
        return INTERVAL_SECONDS

    async def _write(self, status: dict[str, Any]) -> None:
        wanted = map(Condition.from_json, status["conditions"])
        conditions = with_times(wanted, self._conditions, clock.now())
        manifest = {
            "apiVersion": manifests.GPU_NODE.api_version,
            "kind": manifests.GPU_NODE.kind,
            # With the uid: should the object have been replaced meanwhile, the new one is told by the next write.
            "metadata": {"name": self._node, "uid": self._uid},
            "status": {**status, "conditions": [condition.to_json() for condition in conditions]},
        }
        await self._cluster.apply(manifest, manager=names.MANAGER_AGENT, force=True, subresource="status")
        self._conditions = conditions
