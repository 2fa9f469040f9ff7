"""The process of the scheduler: one scheduler a profile, over one set of caches.

Started by the sandbox beside the workload controllers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack

from gpushare.domain import manifests
from gpushare.kube.cluster import Cluster
from gpushare.sandbox.apiserver.objects import services
from gpushare.sandbox.loops import looping
from gpushare.sandbox.loops.caches import Caches
from gpushare.sandbox.loops.events import SerialEvents
from gpushare.sandbox.loops.recording import Recorder
from gpushare.sandbox.scheduling.configuration import Profile
from gpushare.sandbox.scheduling.extenders import Extender, Locate
from gpushare.sandbox.scheduling.placing import Scheduler, Voice
from gpushare.sandbox.scheduling.reporting import Reporter
from gpushare.sandbox.scheduling.standing import Standing

_SERVICE_SUFFIX = "svc"


async def run(
    cluster: Cluster, log: logging.Logger, stop: asyncio.Event, profiles: Sequence[Profile] = (Profile(),)
) -> None:
    """Schedules until `stop` is set."""
    caches = Caches(cluster, log)
    standing = Standing(caches)
    async with AsyncExitStack() as stack:
        jobs = [caches.run()]
        for profile in profiles:
            recorder = Recorder(cluster, SerialEvents(profile.name, f"{profile.name}-sandbox"), log)
            voice = Voice(recorder=recorder, reporter=Reporter(cluster, recorder, log))
            locate = _locating(caches) if profile.extenders else _as_it_is
            extenders = [Extender(settings, locate) for settings in profile.extenders]
            for extender in extenders:
                stack.push_async_callback(extender.close)
            scheduler = Scheduler(cluster, standing, profile, extenders, voice, log=log)
            jobs += [recorder.run(), _once_synced(caches, scheduler)]
        await looping.run_until(stop, *jobs)


async def _once_synced(caches: Caches, scheduler: Scheduler) -> None:
    await caches.wait()
    await scheduler.run()


def _as_it_is(host: str, port: int) -> str:
    return f"{host}:{port}"


def _locating(caches: Caches) -> Locate:
    """Finds services by their names, `<service>.<namespace>.svc`, at one of their pods; there is no proxy in the sandbox."""
    known, pods = caches.of(manifests.SERVICE), caches.of(manifests.POD)

    def locate(host: str, port: int) -> str | None:
        name, *place = host.split(".")
        if place[1:2] != [_SERVICE_SUFFIX]:
            return _as_it_is(host, port)
        service = known.get((place[0], name))
        if service is None:
            return None
        there = (pod for pod in pods if pod["metadata"].get("namespace") == place[0])
        return services.address_of(service, port, there)

    return locate
