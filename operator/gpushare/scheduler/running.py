"""The parts of a running scheduler and how they hang together. Made by `app`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from gpushare import names
from gpushare.domain import manifests
from gpushare.errors import ClusterRefused, ClusterUnavailable
from gpushare.kube import clock
from gpushare.kube.cluster import Cluster
from gpushare.kube.events import EventPoster, Source
from gpushare.kube.leading import Lease
from gpushare.placement.index import FitIndex
from gpushare.scheduler.admission import Admission
from gpushare.scheduler.answering import Answering
from gpushare.scheduler.binding import Binder
from gpushare.scheduler.books import Books, Findings
from gpushare.scheduler.deciding import Decider
from gpushare.scheduler.extender import Extender
from gpushare.scheduler.flights import Flights
from gpushare.scheduler.following import Following
from gpushare.scheduler.forwarding import Forwarder
from gpushare.scheduler.leading import Leading, build_identity
from gpushare.scheduler.limits import Limits
from gpushare.scheduler.monitoring import Facts, Monitoring
from gpushare.scheduler.mutating import AdmissionSettings
from gpushare.scheduler.options import Options
from gpushare.scheduler.settings import resources_of
from gpushare.scheduler.telling import Telling
from gpushare.serving.listening import listen
from gpushare.serving.tls import Place, ServingCertificate

_MOST_BYTES: Final = 512 * 1024 * 1024
"""Whole Nodes of the largest clusters; who may send them is for the network to say."""
_CHECK_SECONDS: Final = 10.0
_SPARE_SECONDS: Final = 0.5
"""An answer has to be there before kube-scheduler hangs up."""


class Scheduler:
    """One replica, from its first request to its last."""

    def __init__(
        self,
        options: Options,
        settings: AdmissionSettings,
        cluster: Cluster,
        namespace: str,
        name: str,
        log: logging.Logger,
    ) -> None:
        self._options = options
        self._cluster = cluster
        self._log = log
        index = FitIndex()
        self._books = Books(Flights(), index.put, index.remove)
        self._limits = Limits(settings.requests, self._books.charges)
        self._following = Following(cluster, self._books, self._limits, resources_of(settings.requests), log)
        decider = Decider(self._books, index, self._limits, settings.requests)
        seconds = options.http_timeout - _SPARE_SECONDS
        self._poster = EventPoster(
            cluster, source=Source(names.MANAGER_SCHEDULER, names.SCHEDULER), now=clock.now, log=log
        )
        self._telling = Telling(self._books, self._poster, lambda: self._leading.is_leading, log)
        self._books.findings = Findings(corrected=self._telling.corrected, strange=self._telling.strange)
        self._binder = Binder(
            cluster, self._books, self._limits, read=decider.read, refused=self._telling.refused, seconds=seconds
        )
        authority = f"{_bracketed(options.address or '127.0.0.1')}:{options.port}"
        identity = build_identity(name, authority)
        lease = Lease(cluster, namespace, names.LEASE_SCHEDULER, identity, log=log)
        self._leading = Leading(
            lease if options.leader_elect else None,
            identity,
            prepare=self._following.catch_up,
            resign=self._binder.stop,
            log=log,
        )
        self._certificate = ServingCertificate(cluster, _build_place(options, namespace), log=log)
        self._forwarder = Forwarder(names.SCHEDULER, lambda: self._certificate.trusted)
        self._extender = Extender(decider, self._binder, self._leading, self._forwarder, seconds=seconds, log=log)
        self._admission = Admission(settings, self._limits.room, log)
        self._monitoring = Monitoring(self._facts)

    async def run(self, settled: Callable[[], object]) -> None:
        """Runs until cancelled. `settled` is called once all that exists has been read."""
        options = self._options
        try:
            async with asyncio.TaskGroup() as group:
                spawn = group.create_task
                if options.metrics_port is not None:
                    spawn(listen(self._monitoring.answer, options.address, options.metrics_port, self._log))
                spawn(self._serve())
                spawn(self._poster.run())
                spawn(self._leading.run())
                await self._leading.look()
                spawn(self._following.run())
                await self._following.wait()
                settled()
                spawn(self._check_reservations())
        finally:
            await self._forwarder.close()
            await self._cluster.close()

    async def _serve(self) -> None:
        await self._certificate.prepare()
        answer = Answering(self._extender, self._admission, self._books, self._monitoring).answer
        async with asyncio.TaskGroup() as group:
            group.create_task(self._certificate.run())
            serve = partial(
                listen, purpose="extender and webhook", tls=self._certificate.context, most_bytes=_MOST_BYTES
            )
            group.create_task(serve(answer, self._options.address, self._options.port, self._log))

    async def _check_reservations(self) -> None:
        doubtful: frozenset[str] = frozenset()
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            try:
                doubtful = await self._binder.check_reservations(doubtful)
            except (ClusterUnavailable, ClusterRefused) as error:
                self._log.warning("cannot look after reservations", extra={"reason": str(error)})

    def _facts(self) -> Facts:
        return Facts(
            missing=self._following.missing,
            leading=self._leading.is_leading,
            leader_known=bool(self._leading.leader),
            books=self._books,
            waiting=self._books.flights.counts[1],
            binds={"bound": self._binder.counts.bound, "refused": self._binder.counts.refused},
            verdicts=self._admission.verdicts,
            corrections=self._telling.corrections,
            strangers=self._telling.strangers,
            spreads=self._extender.timings.spreads,
            quotas=self._limits.all(),
            certificate=self._certificate.gauge(),
        )


def _build_place(options: Options, namespace: str) -> Place:
    service = names.SCHEDULER
    return Place(
        namespace=namespace,
        secret=options.secret,
        owner=names.SCHEDULER,
        hosts=(
            service,
            f"{service}.{namespace}",
            f"{service}.{namespace}.svc",
            "localhost",
            "127.0.0.1",
            *options.hosts,
        ),
        webhooks=((manifests.MUTATING_WEBHOOK_CONFIGURATION, options.webhook),),
    )


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address
