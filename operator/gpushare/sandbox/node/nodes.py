"""One simulated node: its Node object, its device manager, its pods. Told of pods by `fleet`, which has the watch."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpushare.domain.manifests import Manifest
from gpushare.kube.cluster import Cluster
from gpushare.sandbox.loops.recording import Recorder
from gpushare.sandbox.node.plugins import Plugins
from gpushare.sandbox.node.pods import PodWorker
from gpushare.sandbox.node.registering import NodeKeeper
from gpushare.sandbox.node.services import Addresses, Services
from gpushare.sandbox.node.specs import Endpoint, NodeSpec, Pace, Program
from gpushare.sandbox.node.voices import KubeletEvents
from gpushare.sandbox.node.volumes import HostFolders
from gpushare.serving import closing

_END_SECONDS = 5.0
"""How long the programs of a node have to end when the node does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What all nodes of a process have in common."""

    cluster: Cluster
    """With the rights of kubelets: nodes, leases, pods and their status, events, tokens, ConfigMaps and Secrets."""
    api: Endpoint
    """Where programs in pods find the API server."""
    programs: Mapping[str, Program]
    """By the first argument: `agent`, `controller`, ..."""
    log: logging.Logger
    pace: Pace = field(default_factory=Pace)
    addresses: Addresses = field(default_factory=Addresses)


class SimulatedNode:
    """One node. `run` is its life; everything else is called in the same event loop."""

    def __init__(self, spec: NodeSpec, root: Path, site: Site) -> None:
        """`root` is the node's `/`, short enough for `volumes.ROOT_MOST`.

        Raises:
            ValueError: `root` is too long.
        """
        self.name = spec.name
        self.root = root
        self._log = log = site.log.getChild(spec.name)
        self._recorder = Recorder(site.cluster, KubeletEvents(spec.name), log)
        self._plugins = Plugins(root, site.pace.stop_grace, self._touch, log)
        self._keeper = NodeKeeper(spec, site.cluster, self._recorder, self._plugins.counts, site.pace, log)
        folders = HostFolders(root)
        folders.container_root(9999)  # refuses a root that is too long now rather than with the first pod
        self._services = Services(
            node=spec.name,
            cluster=site.cluster,
            recorder=self._recorder,
            plugins=self._plugins,
            allocatable=lambda: self._keeper.allocatable,
            programs=site.programs,
            folders=folders,
            addresses=site.addresses,
            api=site.api,
            pace=site.pace,
            log=log,
        )
        self._workers: dict[str, PodWorker] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def run(self, port: int, stop: asyncio.Event) -> None:
        """Registers and lives until `stop` is set; then ends its programs and leaves the API server as it is.

        `port` is where the logs of its pods are served.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        try:
            await self._plugins.start()
            await self._run(port, stop)
        finally:
            await closing.finish(self._plugins.stop())
            shutil.rmtree(self.root / "c", ignore_errors=True)

    async def _run(self, port: int, stop: asyncio.Event) -> None:
        jobs = [asyncio.create_task(self._keeper.run(port)), asyncio.create_task(self._recorder.run())]
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([*jobs, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            await closing.finish(self._end(jobs))
        for job in jobs:
            if not job.cancelled():
                job.result()  # a job never ends by itself; it broke

    async def _end(self, jobs: Iterable[asyncio.Task[None]]) -> None:
        await self._end_pods()
        for job in jobs:
            job.cancel()
        await asyncio.wait(jobs)

    async def ready(self) -> None:
        """Returns once the Node is registered."""
        await self._keeper.registered.wait()

    async def restart(self) -> None:
        """Restarts the kubelet: it registers again, its sockets are made anew, so must be its plugins; pods run on.

        Raises:
            KubeletError: a socket cannot be bound.
        """
        await self._plugins.stop()
        await self._plugins.start()
        await self._keeper.register_again()

    def see(self, pod: Manifest) -> None:
        """The watch shows a pod of this node, new or changed."""
        worker = self._workers.get(pod["metadata"]["uid"])
        if worker is not None:
            worker.see(pod)
            return
        worker = PodWorker(self._services, pod, self._admitted)
        self._workers[worker.uid] = worker
        task = self._tasks[worker.uid] = asyncio.create_task(worker.run())
        task.add_done_callback(lambda done: self._forget(worker, done))

    def lose(self, uid: str) -> None:
        """A pod of this node is no longer in the API server."""
        if worker := self._workers.get(uid):
            worker.gone()

    def uids(self) -> frozenset[str]:
        """The pods that this node knows."""
        return frozenset(self._workers)

    def find(self, namespace: str, name: str) -> PodWorker | None:
        """A pod by its name; where one follows another of the same name, the newer."""
        for worker in reversed(self._workers.values()):
            metadata = worker.pod["metadata"]
            if (metadata["namespace"], metadata["name"]) == (namespace, name):
                return worker
        return None

    def _touch(self) -> None:
        self._keeper.touch()

    def _admitted(self) -> Iterable[Manifest]:
        return [worker.pod for worker in self._workers.values() if worker.admitted]

    def _forget(self, worker: PodWorker, task: asyncio.Task[None]) -> None:
        self._workers.pop(worker.uid, None)
        self._tasks.pop(worker.uid, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.error("pod worker broke", exc_info=error, extra={"pod": worker.pod["metadata"]["name"]})

    async def _end_pods(self) -> None:
        workers, tasks = tuple(self._workers.values()), tuple(self._tasks.values())
        for worker in workers:
            worker.abandon()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                for worker in workers:
                    await worker.ended.wait()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
