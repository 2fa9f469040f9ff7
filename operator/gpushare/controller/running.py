"""The parts of a running controller and how they hang together. Made by `app`, which imports it late."""

from __future__ import annotations

import asyncio
import logging
import time

from gpushare import names
from gpushare.controller.effects import Effects
from gpushare.controller.looping import Loop
from gpushare.controller.monitoring import Facts, Monitoring
from gpushare.controller.operating import Operating
from gpushare.controller.options import Options
from gpushare.controller.reconciling import Reconciler
from gpushare.controller.snapshotting import Sighting, Store
from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.errors import ClusterRefused, ClusterUnavailable
from gpushare.kube.backoff import Backoff
from gpushare.kube.client import FullCluster
from gpushare.kube.credentials import Credentials
from gpushare.kube.events import EventPoster, Source
from gpushare.kube.leading import Lease
from gpushare.plan.components import Component
from gpushare.plan.snapshot import Settings
from gpushare.render import decorate, ordering, templates
from gpushare.serving.listening import listen


class Controller:
    """One controller, from its first request to its last."""

    def __init__(
        self, options: Options, credentials: Credentials, namespace: str, identity: str, log: logging.Logger
    ) -> None:
        self._cluster = FullCluster(credentials, concurrency=64)
        self._log = log
        self._options = options
        self._served = False
        self._leading = False
        self._lease = Lease(self._cluster, namespace, names.LEASE, identity, log=log) if options.leader_elect else None
        self._store = Store(Settings(namespace=namespace, image=options.image, policy=options.policy, hami_nodes=options.hami_nodes, isolation=options.isolation))
        self._operating = Operating(credentials, namespace, see=self._see, log=log)
        self._poster = EventPoster(
            self._cluster, source=Source(names.MANAGER_CONTROLLER, names.CONTROLLER), now=_now, log=log
        )
        reconciler = Reconciler(
            self._cluster,
            self._store,
            Effects(self._cluster, self._store, render, log),
            self._poster,
            request=lambda reason, seconds: self._loop.request(reason, delay=seconds),
            log=log,
        )
        self._search = reconciler.search
        self._loop = Loop(reconciler.run_pass, resync=reconciler.resync, resync_seconds=options.resync_seconds, log=log)

    async def run(self) -> None:
        """Runs until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                if self._options.metrics_port is not None:
                    answer = Monitoring(self._facts).answer
                    group.create_task(
                        listen(answer, self._options.metrics_address, self._options.metrics_port, self._log)
                    )
                await self._wait_for_kinds()
                self._served = True
                group.create_task(self._operating.run())
                group.create_task(self._poster.run())
                group.create_task(self._search.run())
                group.create_task(self._lead())
        finally:
            if self._lease is not None:
                await self._lease.release()
            await self._cluster.close()

    def _see(self, sighting: Sighting, gone: bool) -> None:  # noqa: FBT001 - the shape of `handlers.See`
        if self._store.see(sighting, gone=gone):
            self._loop.request(sighting.kind.plural)

    async def _wait_for_kinds(self) -> None:
        """Waits until our custom resources are served: kopf never looks again for a kind that it did not find."""
        backoff = Backoff(first=0.1, most=5.0)
        for kind in (manifests.CLUSTER_POLICY, manifests.GPU_NODE):
            while True:
                try:
                    await self._cluster.names(kind)
                    break
                except (ClusterRefused, ClusterUnavailable) as error:
                    self._log.warning("waiting for the cluster", extra={"kind": kind.kind, "reason": str(error)})
                await asyncio.sleep(backoff.next())

    async def _lead(self) -> None:
        """Runs passes while the Lease is ours; watches go on all the time, so that taking over is quick."""
        if self._lease is None:
            self._leading = True
            await self._loop.run()
            return
        while True:
            await self._lease.acquire()
            passes = asyncio.create_task(self._loop.run())
            self._leading = True
            try:
                await self._lease.hold()
            finally:
                self._leading = False
                passes.cancel()
                await asyncio.wait({passes})

    def _facts(self) -> Facts:
        return Facts(served=self._served, leading=self._leading, passes=self._loop.passes, objects=self._store.counts)


def render(component: Component) -> list[Manifest]:
    """All objects of a component, as they are to be applied and in that order."""
    rendered = templates.render(component.name, component.values)
    decorated = decorate.decorate(
        rendered, component=component.name, owner=component.owner, owner_uid=component.owner_uid
    )
    return ordering.in_order(decorated)


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
