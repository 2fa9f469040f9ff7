"""Keeps Nodes: registers, repairs, gives up the silent ones. One of the controllers that `workloads.app` starts."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Sequence

from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.kube.cluster import Cluster, PatchType
from gpushare.sandbox.apiserver.objects import times
from gpushare.sandbox.loops import caches as caching
from gpushare.sandbox.loops.caches import Caches, Key
from gpushare.sandbox.loops.events import CountedEvents
from gpushare.sandbox.loops.looping import Loop
from gpushare.sandbox.loops.recording import Recorder
from gpushare.sandbox.workloads import pods as pod_facts
from gpushare.sandbox.workloads.nodes import repairing, silence
from gpushare.sandbox.workloads.writing import Writer

_LEASES = "kube-node-lease"


class Nodes:
    """Keeps every Node's taints and labels, and notices when its kubelet falls silent."""

    def __init__(self, cluster: Cluster, caches: Caches, log: logging.Logger) -> None:
        self._cluster = cluster
        self._caches = caches
        self._nodes = caches.of(manifests.NODE)
        self._pods = caches.of(manifests.POD)
        self._leases = caches.of(manifests.LEASE)
        self._recorder = Recorder(cluster, CountedEvents("node-controller"), log)
        self._writer = Writer(cluster, caches, self._recorder)
        self._loop = Loop("node", self._sync, log)
        self._heard: dict[str, float] = {}
        """When each node was last heard of, by our own clock: clocks of machines differ."""
        self._nodes.listen(self._see_node)
        self._leases.listen(self._see_lease)

    def jobs(self) -> Sequence[Coroutine[None, None, None]]:
        """What has to run."""
        return self._loop.run(self._caches), self._recorder.run()

    async def _sync(self, key: Key) -> None:
        node = self._nodes.get(key)
        if node is None or caching.is_terminating(node):
            return
        name = node["metadata"]["name"]
        left = silence.seconds_left(node, time.monotonic() - self._heard[name])
        if left == 0:
            await self._give_up(node)
            node = self._nodes.get(key) or node
        elif left is not None:
            self._loop.request_after(key, left)
        others = [other for other in self._nodes if other["metadata"]["name"] != name]
        networks = {other.get("spec", {}).get("podCIDR", "") for other in others}
        repaired = repairing.build_repaired(node, networks, time.time())
        if repaired is not None:
            await self._writer.replace(repaired)

    async def _give_up(self, node: Manifest) -> None:
        name = node["metadata"]["name"]
        body = {"status": {"conditions": silence.build_unknown(node, time.time())}}
        patched = await self._cluster.patch(
            manifests.NODE, name, body, patch_type=PatchType.STRATEGIC, subresource="status"
        )
        if patched is None:
            return
        self._nodes.put(patched)
        self._recorder.normal(node, "NodeNotReady", f"Node {name} status is now: NodeNotReady")
        ready = [pod for pod in self._pods if pod["spec"].get("nodeName") == name and pod_facts.is_ready(pod)]
        await asyncio.gather(*(self._mark_not_ready(pod) for pod in ready))

    async def _mark_not_ready(self, pod: Manifest) -> None:
        condition = {"type": "Ready", "status": "False", "lastTransitionTime": times.seconds_text(time.time())}
        metadata = pod["metadata"]
        await self._cluster.patch(
            manifests.POD,
            metadata["name"],
            {"metadata": {"uid": metadata["uid"]}, "status": {"conditions": [condition]}},
            metadata["namespace"],
            patch_type=PatchType.STRATEGIC,
            subresource="status",
        )
        self._recorder.warning(pod, "NodeNotReady", "Node is not ready")

    def _see_node(self, before: Manifest | None, after: Manifest | None) -> None:
        if after is None:
            assert before is not None
            self._heard.pop(before["metadata"]["name"], None)
            self._say(before, "RemovingNode", "Removing Node {} from Controller")
            return
        if before is None:
            self._say(after, "RegisteredNode", "Registered Node {} in Controller")
        if before is None or _heartbeat(before) != _heartbeat(after):
            self._heard[after["metadata"]["name"]] = time.monotonic()
        self._loop.request(caching.key_of(after))

    def _see_lease(self, _before: Manifest | None, after: Manifest | None) -> None:
        if after is not None and after["metadata"].get("namespace") == _LEASES:
            name = after["metadata"]["name"]
            if name in self._heard:
                self._heard[name] = time.monotonic()

    def _say(self, node: Manifest, reason: str, text: str) -> None:
        name = node["metadata"]["name"]
        self._recorder.normal(node, reason, f"Node {name} event: {text.format(name)}")


def _heartbeat(node: Manifest) -> object:
    return repairing.condition_of(node, "Ready").get("lastHeartbeatTime")
