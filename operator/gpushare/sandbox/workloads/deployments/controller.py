"""Carries out what is decided about Deployments. One of the controllers that `workloads.app` starts."""

from __future__ import annotations

import logging
import time
from collections.abc import Coroutine, Sequence

from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.kube.cluster import Cluster
from gpushare.sandbox.loops import caches as caching
from gpushare.sandbox.loops import owners
from gpushare.sandbox.loops.caches import Caches, Key
from gpushare.sandbox.loops.children import Children
from gpushare.sandbox.loops.events import CountedEvents
from gpushare.sandbox.loops.looping import Loop
from gpushare.sandbox.loops.recording import Recorder
from gpushare.sandbox.workloads import pods as pod_facts
from gpushare.sandbox.workloads import routing
from gpushare.sandbox.workloads.deployments import replica_sets, rolling, status
from gpushare.sandbox.workloads.deployments.replica_sets import View
from gpushare.sandbox.workloads.writing import Writer


class Deployments:
    """Keeps the ReplicaSets and the status of every Deployment."""

    def __init__(self, cluster: Cluster, caches: Caches, log: logging.Logger) -> None:
        self._caches = caches
        self._deployments = caches.of(manifests.DEPLOYMENT)
        self._replica_sets = caches.of(manifests.REPLICA_SET)
        self._owned, self._pods = Children(self._replica_sets), Children(caches.of(manifests.POD))
        self._recorder = Recorder(cluster, CountedEvents("deployment-controller"), log)
        self._writer = Writer(cluster, caches, self._recorder)
        self._loop = Loop("deployment", self._sync, log)
        routing.route_own(self._deployments, self._loop)
        routing.route_children(self._owned, manifests.DEPLOYMENT, self._deployments, self._loop)
        self._pods.cache.listen(self._see_pod)

    def jobs(self) -> Sequence[Coroutine[None, None, None]]:
        """What has to run."""
        return self._loop.run(self._caches), self._recorder.run()

    async def _sync(self, key: Key) -> None:
        deployment = self._deployments.get(key)
        if deployment is None or caching.is_terminating(deployment):
            return  # the garbage collector takes its ReplicaSets
        candidates = self._owned.candidates(deployment)
        view = self._view(deployment, await self._writer.claim(deployment, manifests.DEPLOYMENT, candidates))
        created = ""
        if view.new is None and rolling.may_start(view):
            created = await self._start(view)
        elif view.new is not None and (renewed := replica_sets.build_renewed(view)) is not None:
            await self._writer.replace(renewed)
        view = self._again(deployment)
        await self._scale(view)
        deployment = await self._number(view)
        view = self._again(deployment)
        now = time.time()
        await self._writer.replace_status(deployment, status.build_status(view, now, created=created))
        if status.is_complete(view):
            await self._forget(view)
        late = status.seconds_until_late(view, now)
        if late is not None:
            self._loop.request_after(key, late)

    def _view(self, deployment: Manifest, owned: Sequence[Manifest]) -> View:
        view = replica_sets.build_view(deployment, owned)
        return replica_sets.build_view(deployment, owned, has_old_pods=self._has_pods(view.old))

    def _again(self, deployment: Manifest) -> View:
        """From the cache, which has what was just written."""
        return self._view(deployment, self._owned.of(deployment))

    def _has_pods(self, old: Sequence[Manifest]) -> bool:
        return any(not pod_facts.has_ended(pod) for replica_set in old for pod in self._pods.of(replica_set))

    async def _start(self, view: View) -> str:
        created = await self._writer.create(replica_sets.build_new(view, rolling.first_replicas(view)))
        self._tell(view.deployment, created, 0)
        return str(created["metadata"]["name"])

    async def _scale(self, view: View) -> None:
        for scaling in rolling.build_scalings(view):
            before = replica_sets.spec_replicas(scaling.replica_set)
            scaled = replica_sets.build_scaled(view, scaling.replica_set, scaling.replicas)
            self._tell(view.deployment, await self._writer.replace(scaled), before)

    async def _number(self, view: View) -> Manifest:
        """Shows the number of the current template on the Deployment: `kubectl rollout history` reads it there."""
        if view.new is None:
            return view.deployment
        number = str(replica_sets.revision_of(view.new))
        metadata = view.deployment["metadata"]
        annotations = {**(metadata.get("annotations") or {}), replica_sets.ANNOTATION_REVISION: number}
        if annotations == metadata.get("annotations"):
            return view.deployment
        return await self._writer.replace({**view.deployment, "metadata": {**metadata, "annotations": annotations}})

    async def _forget(self, view: View) -> None:
        limit = int(view.deployment["spec"].get("revisionHistoryLimit", 10))
        empty = [
            found
            for found in sorted(view.old, key=replica_sets.revision_of)
            if not replica_sets.spec_replicas(found) and not found.get("status", {}).get("replicas")
        ]
        for found in empty[: max(0, len(empty) - limit)]:
            await self._writer.delete(found)

    def _tell(self, deployment: Manifest, replica_set: Manifest, before: int) -> None:
        after = replica_sets.spec_replicas(replica_set)
        if before != after:
            direction = "up" if after > before else "down"
            text = f"Scaled {direction} replica set {replica_set['metadata']['name']} from {before} to {after}"
            self._recorder.normal(deployment, "ScalingReplicaSet", text)

    def _see_pod(self, before: Manifest | None, after: Manifest | None) -> None:
        """The end of a pod lets a Deployment that recreates go on."""
        if before is None or (after is not None and not pod_facts.has_ended(after)):
            return
        owner = owners.key_of_controller(before, manifests.REPLICA_SET)
        replica_set = self._replica_sets.get(owner) if owner is not None else None
        key = owners.key_of_controller(replica_set, manifests.DEPLOYMENT) if replica_set is not None else None
        if key is not None:
            self._loop.request(key)
