"""Carries out what is decided about DaemonSets. One of the controllers that `workloads.app` starts."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Sequence

from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.kube.cluster import Cluster
from gpushare.sandbox.apiserver.objects import selectors
from gpushare.sandbox.loops import caches as caching
from gpushare.sandbox.loops.caches import Caches, Key
from gpushare.sandbox.loops.children import Children
from gpushare.sandbox.loops.events import CountedEvents
from gpushare.sandbox.loops.looping import Loop
from gpushare.sandbox.loops.recording import Recorder
from gpushare.sandbox.scheduling import taints
from gpushare.sandbox.workloads import pods as pod_facts
from gpushare.sandbox.workloads import routing
from gpushare.sandbox.workloads.daemonsets import deciding, placing, revisions, status
from gpushare.sandbox.workloads.daemonsets.deciding import Actions, View
from gpushare.sandbox.workloads.daemonsets.held import HeldNodes
from gpushare.sandbox.workloads.writing import Writer


class DaemonSets:
    """Keeps the pods, the history and the status of every DaemonSet."""

    def __init__(self, cluster: Cluster, caches: Caches, log: logging.Logger) -> None:
        self._caches = caches
        self._sets = caches.of(manifests.DAEMON_SET)
        self._revisions = Children(caches.of(manifests.CONTROLLER_REVISION))
        self._pods = Children(caches.of(manifests.POD))
        self._nodes = caches.of(manifests.NODE)
        self._recorder = Recorder(cluster, CountedEvents("daemonset-controller"), log)
        self._writer = Writer(cluster, caches, self._recorder)
        self._loop = Loop("daemonset", self._sync, log)
        self._held: dict[Key, HeldNodes] = {}
        """Nodes on which pods keep failing, by DaemonSet."""
        routing.route_own(self._sets, self._loop)
        routing.route_children(self._pods, manifests.DAEMON_SET, self._sets, self._loop)
        routing.route_children(self._revisions, manifests.DAEMON_SET, self._sets, self._loop)
        self._nodes.listen(self._see_node)

    def jobs(self) -> Sequence[Coroutine[None, None, None]]:
        """What has to run."""
        return self._loop.run(self._caches), self._recorder.run()

    async def _sync(self, key: Key) -> None:
        daemon_set = self._sets.get(key)
        if daemon_set is None or caching.is_terminating(daemon_set):
            self._held.pop(key, None)
            return  # the garbage collector takes its pods
        known = await self._writer.claim(daemon_set, manifests.DAEMON_SET, self._revisions.candidates(daemon_set))
        revision_hash = await self._keep_history(daemon_set, known)
        pods = await self._writer.claim(daemon_set, manifests.DAEMON_SET, self._pods.candidates(daemon_set))
        view = self._view(daemon_set, revision_hash, pods)
        try:
            await self._act(view)
        finally:
            # Like the real one, also where pods could not be made, and as they were before: who follows a rollout sees that
            # an old pod has gone before its successor counts. Pods that have just been made bring the next call.
            await self._writer.replace_status(daemon_set, status.build_status(view))
        await self._forget_history(daemon_set, known, pods)
        self._come_back(key, view)

    def _view(self, daemon_set: Manifest, revision_hash: str, pods: Sequence[Manifest]) -> View:
        return View(
            daemon_set=daemon_set,
            revision_hash=revision_hash,
            nodes=sorted(self._nodes, key=lambda node: str(node["metadata"]["name"])),
            pods=pods,
            now=time.time(),
        )

    async def _keep_history(self, daemon_set: Manifest, known: Sequence[Manifest]) -> str:
        history = revisions.build_history(daemon_set, known)
        if history.create is not None:
            await self._writer.create(history.create)
        if history.renumber is not None:
            await self._writer.replace(history.renumber)
        return history.current_hash

    async def _forget_history(self, daemon_set: Manifest, known: Sequence[Manifest], pods: Sequence[Manifest]) -> None:
        used = {selectors.labels_of(pod).get(placing.LABEL_HASH, "") for pod in pods}
        for revision in revisions.build_excess(daemon_set, known, used):
            await self._writer.delete(revision)

    async def _act(self, view: View) -> None:
        daemon_set = view.daemon_set
        held = self._held.setdefault(caching.key_of(daemon_set), HeldNodes())
        actions = deciding.build_actions(view, held.names(asyncio.get_running_loop().time()))
        self._tell_failures(daemon_set, actions, held)
        await self._writer.delete_pods(daemon_set, actions.delete)
        created = [placing.build_pod(daemon_set, node, view.revision_hash) for node in actions.create]
        await self._writer.create_pods(daemon_set, created)

    def _tell_failures(self, daemon_set: Manifest, actions: Actions, held: HeldNodes) -> None:
        for node, pod in actions.ended.items():
            held.hold(node, asyncio.get_running_loop().time())
            metadata = pod["metadata"]
            where = f"daemon pod {metadata['namespace']}/{metadata['name']} on node {node}"
            if pod_facts.phase_of(pod) == "Failed":
                text = f"Found failed {where}, will try to kill it"
                self._recorder.warning(daemon_set, "FailedDaemonPod", text)
            else:
                text = f"Found succeeded {where}, will try to delete it"
                self._recorder.normal(daemon_set, "SucceededDaemonPod", text)

    def _come_back(self, key: Key, view: View) -> None:
        waits = (
            status.seconds_until_change(view),
            self._held[key].seconds_until_free(asyncio.get_running_loop().time()),
        )
        for wait in waits:
            if wait is not None:
                self._loop.request_after(key, wait)

    def _see_node(self, before: Manifest | None, after: Manifest | None) -> None:
        if before is not None and after is not None and _facts(before) == _facts(after):
            return
        for daemon_set in self._sets:
            self._loop.request(caching.key_of(daemon_set))


def _facts(node: Manifest) -> tuple[object, ...]:
    """What decides whether a node gets a pod; a heartbeat changes none of it."""
    return selectors.labels_of(node), taints.taints_of(node)
