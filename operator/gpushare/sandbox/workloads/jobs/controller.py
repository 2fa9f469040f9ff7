"""Carries out what is decided about Jobs. One of the controllers that `workloads.app` starts."""

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
from gpushare.sandbox.workloads.jobs import deciding, status
from gpushare.sandbox.workloads.jobs.deciding import Outcome, View
from gpushare.sandbox.workloads.replicasets import deciding as counting
from gpushare.sandbox.workloads.writing import Writer


class Jobs:
    """Keeps the pods and the status of every Job, and removes those whose time is over."""

    def __init__(self, cluster: Cluster, caches: Caches, log: logging.Logger) -> None:
        self._caches = caches
        self._jobs = caches.of(manifests.JOB)
        self._pods = Children(caches.of(manifests.POD))
        self._recorder = Recorder(cluster, CountedEvents("job-controller"), log)
        self._writer = Writer(cluster, caches, self._recorder)
        self._loop = Loop("job", self._sync, log)
        routing.route_own(self._jobs, self._loop)
        routing.route_children(self._pods, manifests.JOB, self._jobs, self._loop)

    def jobs(self) -> Sequence[Coroutine[None, None, None]]:
        """What has to run."""
        return self._loop.run(self._caches), self._recorder.run()

    async def _sync(self, key: Key) -> None:
        job = self._jobs.get(key)
        if job is None or caching.is_terminating(job):
            return  # the garbage collector takes its pods
        if deciding.finished_at(job) is not None:
            await self._remove(key, job)
            return
        pods = await self._writer.claim(job, manifests.JOB, self._pods.candidates(job))
        view = View(job=job, pods=pods, now=time.time())
        outcome = deciding.find_outcome(view)
        if outcome is None:
            await self._balance(key, view)
        else:
            await self._writer.delete_pods(job, view.active)
        # Again from the cache: it has what was just written.
        view = View(job=job, pods=self._pods.of(job), now=view.now)
        await self._writer.replace_status(job, status.build_status(view, outcome))
        self._tell(job, outcome)
        deadline = deciding.seconds_until_deadline(view)
        if deadline is not None:
            self._loop.request_after(key, deadline)

    async def _balance(self, key: Key, view: View) -> None:
        missing = deciding.missing_count(view)
        if missing < 0:
            await self._writer.delete_pods(view.job, counting.build_excess(view.pods, -missing))
            return
        held = deciding.seconds_held(view)
        if missing and held:
            self._loop.request_after(key, held)
            return
        await self._writer.create_pods(view.job, [_build_pod(view.job) for _ in range(missing)])

    async def _remove(self, key: Key, job: Manifest) -> None:
        wait = deciding.seconds_until_removal(job, time.time())
        if wait == 0:
            await self._writer.delete(job)
        elif wait is not None:
            self._loop.request_after(key, wait)

    def _tell(self, job: Manifest, outcome: Outcome | None) -> None:
        if outcome is Outcome.COMPLETE:
            self._recorder.normal(job, "Completed", "Job completed")
        elif outcome is not None:
            self._recorder.warning(job, outcome.value, deciding.MESSAGES[outcome])


def _build_pod(job: Manifest) -> Manifest:
    name, uid = job["metadata"]["name"], job["metadata"]["uid"]
    prefix = "batch.kubernetes.io/"
    labels = {"controller-uid": uid, "job-name": name, f"{prefix}controller-uid": uid, f"{prefix}job-name": name}
    return templates.build_pod(job, manifests.JOB, job["spec"]["template"], labels)
