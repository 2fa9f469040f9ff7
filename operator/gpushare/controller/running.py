"""The parts of a running controller and how they hang together. Made by `app`, which imports it late."""

from __future__ import annotations

import asyncio
import logging

from gpushare import names
from gpushare.controller import admitting
from gpushare.controller.admitting import Admitting
from gpushare.controller.effects import Effects
from gpushare.controller.looping import Loop
from gpushare.controller.monitoring import Facts, Monitoring
from gpushare.controller.operating import Operating
from gpushare.controller.options import Options, settings_of
from gpushare.controller.permissions import Permissions
from gpushare.controller.reconciling import Reconciler
from gpushare.controller.snapshotting import Sighting, Store
from gpushare.controller.syncing import Syncing
from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.errors import ClusterRefused, GpuShareError
from gpushare.kube import clock
from gpushare.kube.backoff import Backoff
from gpushare.kube.client import FullCluster
from gpushare.kube.complaints import Complaints
from gpushare.kube.credentials import Credentials
from gpushare.kube.events import EventPoster, Source
from gpushare.kube.leading import Lease
from gpushare.plan import figures
from gpushare.plan.components import Component
from gpushare.render import decorate, ordering, templates
from gpushare.serving.listening import listen
from gpushare.serving.tls import ServingCertificate

_FORBIDDEN = 403
_FORBIDDEN_TIMES = 5


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
        settings = settings_of(options, namespace)
        self._certificate = (
            ServingCertificate(self._cluster, admitting.place_of(namespace, options.webhook_secret), log=log)
            if options.webhook_port is not None
            else None
        )
        self._store = Store(settings)
        self._operating = Operating(credentials, settings, see=self._see, log=log)
        self._poster = EventPoster(
            self._cluster, source=Source(names.MANAGER_CONTROLLER, names.CONTROLLER), now=clock.now, log=log
        )
        self._reconciler = Reconciler(
            self._cluster,
            self._store,
            Effects(self._cluster, self._store, render, log),
            self._poster,
            request=lambda reason, seconds: self._loop.request(reason, delay=seconds),
            log=log,
        )
        self._permissions = Permissions(self._cluster, namespace, _own_roles(namespace), log)
        syncing = Syncing(
            self._cluster,
            self._store,
            self._permissions,
            report_blocked=self._reconciler.report_blocked,
            request=lambda seconds: self._loop.request_resync(delay=seconds),
        )
        self._loop = Loop(
            self._reconciler.run_pass, resync=syncing.resync, resync_seconds=options.resync_seconds, log=log
        )

    async def run(self) -> None:
        """Runs until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                if self._options.metrics_port is not None:
                    answer = Monitoring(self._facts, lambda: figures.build_figures(self._store.snapshot())).answer
                    group.create_task(
                        listen(answer, self._options.metrics_address, self._options.metrics_port, self._log)
                    )
                await self._wait_for_kinds()
                self._served = True
                if self._certificate is not None and self._options.webhook_port is not None:
                    group.create_task(self._admit(self._certificate, self._options.webhook_port))
                group.create_task(self._operating.run())
                group.create_task(self._poster.run())
                group.create_task(self._reconciler.search.run())
                group.create_task(self._lead())
        finally:
            if self._lease is not None:
                await self._lease.release()
            await self._cluster.close()

    async def _admit(self, certificate: ServingCertificate, port: int) -> None:
        """Judges ConfigMaps for the API server; each replica does, whoever leads."""
        await certificate.prepare()
        answer = Admitting(self._store.snapshot).answer
        async with asyncio.TaskGroup() as group:
            group.create_task(certificate.run())
            group.create_task(
                listen(
                    answer, self._options.metrics_address, port, self._log, purpose="webhook", tls=certificate.context
                )
            )

    def _see(self, sighting: Sighting, gone: bool) -> None:  # noqa: FBT001 - the shape of `handlers.See`
        if self._store.see(sighting, gone=gone):
            self._loop.request(sighting.kind.plural)

    async def _wait_for_kinds(self) -> None:
        """Waits until our custom resources are served: kopf never looks again for a kind that it did not find."""
        backoff, complaints = Backoff(first=0.1, most=5.0), Complaints(asyncio.get_running_loop().time)
        for kind in (manifests.CLUSTER_POLICY, manifests.GPU_NODE):
            forbidden = 0
            while True:
                try:
                    await self._cluster.names(kind)
                    break
                except GpuShareError as error:
                    reason = str(error)
                    # A server that has just started forbids everything for a moment. What is forbidden for good is told
                    # on the policy, for which the policies have to be seen.
                    forbidden += isinstance(error, ClusterRefused) and error.code == _FORBIDDEN
                    if forbidden > _FORBIDDEN_TIMES and kind is not manifests.CLUSTER_POLICY:
                        break
                if complaints.is_news(reason):
                    self._log.warning("waiting for the cluster", extra={"kind": kind.kind, "reason": reason})
                await self._permissions.describe_missing()
                await asyncio.sleep(backoff.next())
        # Without the rights to lead nobody would ask for them.
        await self._permissions.describe_missing()

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
        return Facts(
            served=self._served,
            leading=self._leading,
            passes=self._loop.passes,
            objects=self._store.counts,
            certificate=self._certificate.gauge() if self._certificate is not None else None,
            now=asyncio.get_running_loop().time(),
            unspeakable=self._permissions.unspeakable,
            misnamed=self._reconciler.misnamed,
            watches_stand_seconds=self._operating.standing_seconds if self._served else 0.0,
        )


def render(component: Component) -> list[Manifest]:
    """All objects of a component, as they are to be applied and in that order."""
    rendered = templates.render(component.name, component.values)
    decorated = decorate.decorate(
        rendered, component=component.name, owner=component.owner, owner_uid=component.owner_uid
    )
    return ordering.in_order(decorated)


def _own_roles(namespace: str) -> list[Manifest]:
    """What is to be installed with the controller, whose image does not matter here."""
    return templates.render("controller", {"namespace": namespace, "image": ""})
