"""Carries out what is decided about ReplicaSets. One of the controllers that `workloads.app` starts."""

from __future__ import annotations

import logging
import time
from collections.abc import Coroutine, Sequence

from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.kube.cluster import Cluster
from gpushare.sandbox.loops import caches as caching
from gpushare.sandbox.loops.caches import Caches, Key
from gpushare.sandbox.loops.children import Children
from gpushare.sandbox.loops.events import CountedEvents
from gpushare.sandbox.loops.looping import Loop
from gpushare.sandbox.loops.recording import Recorder
from gpushare.sandbox.workloads import routing, templates
from gpushare.sandbox.workloads.replicasets import deciding
from gpushare.sandbox.workloads.writing import Writer


class ReplicaSets:
    """Keeps the pods and the status of every ReplicaSet."""

    def __init__(self, cluster: Cluster, caches: Caches, log: logging.Logger) -> None:
        self._caches = caches
        self._sets = caches.of(manifests.REPLICA_SET)
        self._pods = Children(caches.of(manifests.POD))
        self._recorder = Recorder(cluster, CountedEvents("replicaset-controller"), log)
        self._writer = Writer(cluster, caches, self._recorder)
        self._loop = Loop("replicaset", self._sync, log)
        routing.route_own(self._sets, self._loop)
        routing.route_children(self._pods, manifests.REPLICA_SET, self._sets, self._loop)

    def jobs(self) -> Sequence[Coroutine[None, None, None]]:
        """What has to run."""
        return self._loop.run(self._caches), self._recorder.run()

    async def _sync(self, key: Key) -> None:
        replica_set = self._sets.get(key)
        if replica_set is None or caching.is_terminating(replica_set):
            return  # the garbage collector takes its pods
        candidates = self._pods.candidates(replica_set)
        pods = await self._writer.claim(replica_set, manifests.REPLICA_SET, candidates)
        await self._balance(key, replica_set, pods)
        # Again from the cache: it has what was just written.
        pods = self._pods.of(replica_set)
        now = time.time()
        await self._writer.replace_status(replica_set, deciding.build_status(replica_set, pods, now))
        wait = deciding.seconds_until_change(replica_set, pods, now)
        if wait is not None:
            self._loop.request_after(key, wait)

    async def _balance(self, key: Key, replica_set: Manifest, pods: Sequence[Manifest]) -> None:
        missing = deciding.missing_count(replica_set, pods)
        held = deciding.seconds_held(pods, time.time())
        if missing < 0:
            await self._writer.delete_pods(replica_set, deciding.build_excess(pods, -missing))
        elif missing and held:
            self._loop.request_after(key, held)
        else:
            template = replica_set["spec"]["template"]
            created = [templates.build_pod(replica_set, manifests.REPLICA_SET, template, {}) for _ in range(missing)]
            await self._writer.create_pods(replica_set, created)
