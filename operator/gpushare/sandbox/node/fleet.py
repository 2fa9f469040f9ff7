"""All simulated nodes of a process: one watch of pods, one log server, one life. Started by the sandbox."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.kube import watching
from gpushare.kube.cluster import EventType, WatchEvent
from gpushare.kube.watching import Synced
from gpushare.sandbox.node.logserver import LogServer
from gpushare.sandbox.node.nodes import SimulatedNode, Site
from gpushare.sandbox.node.pods import PodWorker
from gpushare.sandbox.node.specs import NodeSpec
from gpushare.serving import closing


class NodeFleet:
    """Nodes that share what need not exist once for each of them."""

    def __init__(self, specs: Sequence[NodeSpec], root: Path, site: Site) -> None:
        """Made inside the event loop. Each node's `/` is a folder below `root`, which must be short: sockets lie deep below.

        Raises:
            ValueError: `root` is too long.
        """
        self._site = site
        self.nodes = {
            spec.name: SimulatedNode(spec, root / str(number), site) for number, spec in enumerate(specs, start=1)
        }
        self._logs = LogServer(self._find, site.log)

    async def run(self, stop: asyncio.Event, *, tls: ssl.SSLContext | None = None) -> None:
        """Runs all nodes until `stop` is set. `tls`: what the log server shows; None: a certificate of its own.

        Raises:
            ExceptionGroup: of `KubeletError`, where the sockets of nodes cannot be bound.
        """
        port = await self._logs.start(tls)
        follower = asyncio.create_task(self._follow())
        try:
            async with asyncio.TaskGroup() as group:
                for node in self.nodes.values():
                    group.create_task(node.run(port, stop))
        finally:
            follower.cancel()
            await closing.finish(asyncio.wait({follower}))
            await self._logs.stop()

    async def ready(self) -> None:
        """Returns once every node is registered."""
        for node in self.nodes.values():
            await node.ready()

    async def _follow(self) -> None:
        """The pods of all nodes through one watch; those of nodes that are not ours are passed over."""
        names = tuple(self.nodes)
        # One node can be asked for alone; of several, only that a pod has a node at all.
        fields = f"spec.nodeName={names[0]}" if len(names) == 1 else "spec.nodeName!="
        cluster, log = self._site.cluster, self._site.log
        async with aclosing(watching.follow(cluster, manifests.POD, fields=fields, log=log)) as changes:
            async for change in changes:
                if isinstance(change, Synced):
                    self._sync(change.items)
                else:
                    self._see(change.event)

    def _see(self, event: WatchEvent) -> None:
        node = self._node_of(event.object)
        if node is None:
            return
        if event.type is EventType.DELETED:
            node.lose(event.object["metadata"]["uid"])
        else:
            node.see(event.object)

    def _sync(self, pods: Sequence[Manifest]) -> None:
        present = {pod["metadata"]["uid"] for pod in pods}
        for node in self.nodes.values():
            for uid in node.uids() - present:
                node.lose(uid)
        # Oldest first, as a kubelet admits them after it was away.
        for pod in sorted(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp") or "")):
            self._see(WatchEvent(EventType.MODIFIED, pod))

    def _node_of(self, pod: Manifest) -> SimulatedNode | None:
        return self.nodes.get(pod["spec"].get("nodeName") or "")

    def _find(self, namespace: str, name: str) -> PodWorker | None:
        found = (node.find(namespace, name) for node in self.nodes.values())
        return next((worker for worker in found if worker is not None), None)
