"""Fractions on one node: begins and ends with the mode that is in force. Made by the agent when a configuration asks for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Final

from gpushare import names
from gpushare.agent.deciding import Decision
from gpushare.agent.fractions.answering import FractionAnswers
from gpushare.agent.fractions.flight import Entry
from gpushare.agent.fractions.following import PodFollower
from gpushare.agent.fractions.reporting import Holdings, build_holdings
from gpushare.agent.fractions.withholding import withhold
from gpushare.agent.holding import HolderWatch
from gpushare.agent.keeping import keep
from gpushare.domain import manifests
from gpushare.domain.devices import Inventory
from gpushare.domain.events import EventNote, EventType
from gpushare.domain.fractions import FractionMode, Isolation
from gpushare.domain.manifests import ObjectKey
from gpushare.host.hami_core import HamiCore
from gpushare.kube import clock
from gpushare.kube.cluster import Cluster
from gpushare.kube.events import EventPoster, Source

SILENT: Final = "the kubelet does not tell who holds which devices"
LOOK_SECONDS: Final = 10.0
"""Between two looks for the library of an administrator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What fractions need of the agent."""

    cluster: Cluster
    node: str
    library: HamiCore
    holders: HolderWatch
    executor: Executor
    log: logging.Logger


class Fractions:
    """What goes on beside the plugin servers while a node gives out fractions."""

    def __init__(self, around: Surroundings, *, on_change: Callable[[], None], on_news: Callable[[], None]) -> None:
        """Calls `on_change` when the pools have to be looked at again, and `on_news` when a pod has got something else."""
        self.answers: FractionAnswers | None = None
        """None: the node gives out none."""
        self._around = around
        self._on_change = on_change
        self._on_news = on_news
        self._told: Holdings = {}
        self._loop = asyncio.get_running_loop()
        self._missing = ""
        """Why the library cannot be had; empty where it can, or is not needed."""
        self._task: asyncio.Task[None] | None = None
        self._follower: PodFollower | None = None
        self._poster = EventPoster(
            around.cluster,
            source=Source(names.MANAGER_AGENT, names.DAEMONSET_DEVICE_PLUGIN),
            now=clock.now,
            log=around.log,
        )

    async def apply(self, decision: Decision, inventory: Inventory | None) -> Decision:
        """Brings everything to the mode that was decided. Returns the decision as this host can have it."""
        mode = decision.fractions
        if mode != (self.answers.mode if self.answers is not None else None):
            await self.end()
            if mode is not None:
                self._begin(mode)
        if self.answers is None or mode is None:
            return decision
        if inventory is not None:
            self.answers.gpus = {gpu.uuid: gpu for gpu in inventory.gpus}
        if mode.isolation is Isolation.HAMI_CORE:
            self._missing = await self._in_thread(self._around.library.look)
        return withhold(decision, self._missing, path="gpushare.isolation") if self._missing else decision

    async def end(self) -> None:
        """Ends what runs beside."""
        self.answers, self._missing = None, ""
        self._around.holders.awaits_more = None
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    def see_holders(self) -> None:
        """The kubelet was asked who holds what."""
        if self.answers is not None:
            with self.answers.changing() as flight:
                flight.see_holders(self._around.holders.holders)

    @property
    def refusals(self) -> Mapping[str, int]:
        """What was refused to the kubelet, by reason."""
        return self.answers.refusals.copy() if self.answers is not None else {}

    def holdings(self) -> Holdings:
        """Who has what of which GPU, for reports."""
        if self.answers is None:
            return {}
        with self.answers.changing() as flight:
            return build_holdings(flight)

    def _begin(self, mode: FractionMode) -> None:
        around = self._around
        answers = FractionAnswers(
            mode,
            refresh=self._refresh,
            library=around.library if mode.isolation is Isolation.HAMI_CORE else None,
            on_other=self._tell_other,
        )
        follower = self._follower = PodFollower(
            around.cluster, around.node, answers, around.log, kubelet=around.holders, on_change=self._see_news
        )

        async def follow() -> None:
            # Not before: a pod that has its GPU would be taken for one that is about to get it.
            if not around.holders.is_known:
                answers.trouble = SILENT
                await around.holders.until_known()
                answers.trouble = ""
            await follower.run()

        works: list[Callable[[], Awaitable[None]]] = [follow, self._poster.run]
        if mode.isolation is Isolation.HAMI_CORE:
            works.append(self._look_for_library)
        self.answers = answers
        # The scheduler waits for what the kubelet tells.
        around.holders.awaits_more = lambda: answers.awaits_kubelet
        self._task = asyncio.create_task(_all(works, around.log), name="fractions")

    def _refresh(self) -> None:
        if self._follower is not None:
            self._loop.call_soon_threadsafe(self._follower.refresh)

    def _see_news(self) -> None:
        holdings = self.holdings()
        if holdings != self._told:
            self._told = holdings
            self._on_news()

    async def _look_for_library(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            library = self._around.library
            before = library.version
            missing = await self._in_thread(library.look)
            if missing != self._missing or library.version != before:
                self._around.log.info("HAMi's library", extra={"version": library.version, "missing": missing})
                self._on_change()

    def _tell_other(self, entry: Entry, counts: Mapping[str, int]) -> None:
        """The kubelet has chosen other GPUs than the scheduler. Called in a thread of a plugin server."""
        planned, found = (", ".join(sorted(uuids)) for uuids in ({grant.uuid for grant in entry.grants}, counts))
        message = (
            f"container {entry.container} has {found}, which the kubelet chose, and not {planned} as it was decided"
        )
        self._around.log.warning("kubelet chose otherwise", extra={"pod": entry.pod.title, "said": message})
        note = EventNote(
            regarding=ObjectKey(manifests.POD, entry.pod.name, entry.pod.namespace),
            uid=entry.pod.uid,
            reason="OtherGPU",
            type=EventType.WARNING,
            message=message,
        )
        self._loop.call_soon_threadsafe(self._poster.post, [note])

    async def _in_thread(self, function: Callable[[], str]) -> str:
        return await self._loop.run_in_executor(self._around.executor, function)


async def _all(works: Sequence[Callable[[], Awaitable[None]]], log: logging.Logger) -> None:
    async with asyncio.TaskGroup() as group:
        for work in works:
            group.create_task(keep(work, log))
