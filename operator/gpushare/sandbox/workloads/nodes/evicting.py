"""Removes pods from nodes with a NoExecute taint that they do not tolerate, or no longer. Started by `workloads.app`."""

from __future__ import annotations

import logging
import time
from collections.abc import Coroutine, Sequence

from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.kube.cluster import Cluster
from gpushare.sandbox.apiserver.objects import times
from gpushare.sandbox.loops import caches as caching
from gpushare.sandbox.loops.caches import Caches, Key
from gpushare.sandbox.loops.events import CountedEvents
from gpushare.sandbox.loops.looping import Loop
from gpushare.sandbox.loops.recording import Recorder
from gpushare.sandbox.scheduling import taints
from gpushare.sandbox.workloads import pods as pod_facts
from gpushare.sandbox.workloads.writing import Writer


class Evictions:
    """Looks at every pod when it, or the taints of its node, change; and again when a toleration runs out."""

    def __init__(self, cluster: Cluster, caches: Caches, log: logging.Logger) -> None:
        self._caches = caches
        self._nodes = caches.of(manifests.NODE)
        self._pods = caches.of(manifests.POD)
        self._recorder = Recorder(cluster, CountedEvents("taint-eviction-controller"), log)
        self._writer = Writer(cluster, caches, self._recorder)
        self._loop = Loop("eviction", self._sync, log)
        self._nodes.listen(self._see_node)
        self._pods.listen(self._see_pod)

    def jobs(self) -> Sequence[Coroutine[None, None, None]]:
        """What has to run."""
        return self._loop.run(self._caches), self._recorder.run()

    async def _sync(self, key: Key) -> None:
        pod = self._pods.get(key)
        node = self._nodes.get(("", pod["spec"].get("nodeName", ""))) if pod is not None else None
        if pod is None or node is None or not pod_facts.is_active(pod):
            return
        left = seconds_left(pod, node, time.time())
        if left == 0:
            metadata = pod["metadata"]
            text = f"Marking for deletion Pod {metadata['namespace']}/{metadata['name']}"
            self._recorder.normal(pod, "TaintManagerEviction", text)
            await self._writer.delete(pod)
        elif left is not None:
            self._loop.request_after(key, left)

    def _see_pod(self, before: Manifest | None, after: Manifest | None) -> None:
        if after is not None and after["spec"].get("nodeName") and (before is None or before["spec"] != after["spec"]):
            self._loop.request(caching.key_of(after))

    def _see_node(self, before: Manifest | None, after: Manifest | None) -> None:
        if after is None or (before is not None and taints.taints_of(before) == taints.taints_of(after)):
            return
        for pod in self._pods:
            if pod["spec"].get("nodeName") == after["metadata"]["name"]:
                self._loop.request(caching.key_of(pod))


def seconds_left(pod: Manifest, node: Manifest, now: float) -> float | None:
    """How long the pod may stay on the node; None when for ever. Pure."""
    tolerations = pod["spec"].get("tolerations") or []
    limits = []
    for taint in taints.taints_of(node):
        borne = taints.seconds_tolerated(taint, tolerations) if taint["effect"] == taints.NO_EXECUTE else None
        if borne is not None:
            added = taint.get("timeAdded")
            since = now - times.epoch_of(added) if added and borne else 0.0
            limits.append(max(0.0, borne - since))
    return min(limits, default=None)
