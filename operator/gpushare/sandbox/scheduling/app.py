"""The process of the scheduler: watches pods and nodes, makes a pass when something relevant changed, binds.

Started by the sandbox beside the workload controllers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.errors import ClusterRefused, ClusterUnavailable, Conflict
from gpushare.kube.backoff import Backoff
from gpushare.kube.cluster import Cluster
from gpushare.sandbox.loops import looping
from gpushare.sandbox.loops.caches import Caches
from gpushare.sandbox.loops.events import SerialEvents
from gpushare.sandbox.loops.recording import Recorder
from gpushare.sandbox.scheduling import amounts, diagnosis, filtering, pending, rooms, scoring
from gpushare.sandbox.scheduling.reporting import Reporter
from gpushare.sandbox.scheduling.rooms import Room

_RETRY_SECONDS = 300.0
"""As a real scheduler: however quiet the cluster is, pods that did not fit are tried again after this time."""


async def run(cluster: Cluster, log: logging.Logger, stop: asyncio.Event) -> None:
    """Schedules until `stop` is set."""
    caches = Caches(cluster, log)
    recorder = Recorder(cluster, SerialEvents(pending.SCHEDULER, f"{pending.SCHEDULER}-sandbox"), log)
    scheduler = Scheduler(cluster, caches, recorder, log)
    await looping.run_until(stop, caches.run(), recorder.run(), scheduler.run())


class Scheduler:
    """Places pods, in order of priority and age, on the nodes that its caches show."""

    def __init__(self, cluster: Cluster, caches: Caches, recorder: Recorder, log: logging.Logger) -> None:
        self._cluster = cluster
        self._caches = caches
        self._pods = caches.of(manifests.POD)
        self._nodes = caches.of(manifests.NODE)
        self._recorder = recorder
        self._reporter = Reporter(cluster, recorder, log)
        self._log = log
        self._wanted = asyncio.Event()
        self._assumed: dict[str, str] = {}
        """Node names by uid of pods that are being bound: their room is taken before the watch says so."""
        self._asked: dict[str, amounts.Amounts] = {}
        self._backoff = Backoff(first=0.05, most=10.0)
        self._pods.listen(self._see_pod)
        self._nodes.listen(self._see_node)

    async def run(self) -> None:
        """Makes passes until cancelled."""
        await self._caches.wait()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._reporter.run())
            while True:
                self._wanted.clear()
                self._pass(group)
                soonest = min(_RETRY_SECONDS, self._reporter.seconds_until_due())
                try:
                    async with asyncio.timeout(soonest):
                        await self._wanted.wait()
                except TimeoutError:
                    continue

    def _pass(self, group: asyncio.TaskGroup) -> None:
        waiting = pending.in_order(pod for pod in self._pods if pod["metadata"]["uid"] not in self._assumed)
        if not waiting:
            return
        cluster = self._build_rooms()
        for pod in waiting:
            room = self._place(pod, cluster)
            if room is not None:
                room.take(pod, self._requested(pod))
                self._assumed[pod["metadata"]["uid"]] = room.name
                self._reporter.forget(pod["metadata"]["uid"])
                group.create_task(self._bind(pod, room.name))

    def _place(self, pod: Manifest, cluster: Mapping[str, Room]) -> Room | None:
        asked = self._requested(pod)
        filtered = filtering.build_filtered(pod, asked, cluster)
        if filtered.fitting:
            return scoring.choose(pod, asked, filtered.fitting)
        self._reporter.report(pod, diagnosis.build_message(pod, filtered.refused))
        return None

    def _build_rooms(self) -> dict[str, Room]:
        cluster = rooms.build_rooms(self._nodes)
        for pod in self._pods:
            name = pod["spec"].get("nodeName") or self._assumed.get(pod["metadata"]["uid"])
            if name in cluster and amounts.is_counted(pod):
                cluster[name].take(pod, self._requested(pod))
        return cluster

    def _requested(self, pod: Manifest) -> amounts.Amounts:
        uid = pod["metadata"]["uid"]
        if uid not in self._asked:
            self._asked[uid] = amounts.requested(pod)
        return self._asked[uid]

    async def _bind(self, pod: Manifest, node: str) -> None:
        metadata = pod["metadata"]
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        try:
            await self._cluster.create(binding, subresource="binding", name=metadata["name"])
        except (Conflict, ClusterRefused, ClusterUnavailable) as error:
            # Most often the pod is gone, or was bound by hand: then the watch has said so, or will.
            self._log.info("binding failed", extra={"pod": metadata["name"], "node": node, "reason": str(error)})
            await asyncio.sleep(self._backoff.next())
            self._assumed.pop(metadata["uid"], None)
            self._wanted.set()
            return
        self._backoff.reset()
        text = f"Successfully assigned {metadata['namespace']}/{metadata['name']} to {node}"
        self._recorder.normal(pod, "Scheduled", text, action="Binding")

    def _see_pod(self, before: Manifest | None, after: Manifest | None) -> None:
        pod = after or before
        assert pod is not None
        uid = pod["metadata"]["uid"]
        if after is None or after["spec"].get("nodeName"):
            self._assumed.pop(uid, None)
            self._reporter.forget(uid)
        if after is None:
            self._asked.pop(uid, None)
        if pending.is_relevant(before, after):
            self._wanted.set()

    def _see_node(self, before: Manifest | None, after: Manifest | None) -> None:
        if before is None or after is None or pending.node_facts(before) != pending.node_facts(after):
            self._wanted.set()
