"""Tells the pods of this node as the API server has them. Run by `running` while the node gives out fractions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from gpushare.agent.fractions.answering import FractionAnswers
from gpushare.agent.fractions.pods import BoundPod, read_pod
from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.errors import GpuShareError
from gpushare.kube import watching
from gpushare.kube.cluster import Cluster, EventType
from gpushare.kubelet.values import ContainerDevices


class Kubelet(Protocol):
    """Who tells who holds which devices (`agent.holding.HolderWatch`)."""

    async def ask(self) -> Sequence[ContainerDevices] | None:
        """Asks now; None where it does not answer."""
        ...

    async def read(self) -> Sequence[ContainerDevices]:
        """Asks now; as last known where it does not answer."""
        ...


class PodFollower:
    """Keeps the pods of `answers` true: by a watch, and by a fresh list when somebody cannot wait for it."""

    def __init__(
        self,
        cluster: Cluster,
        node: str,
        answers: FractionAnswers,
        log: logging.Logger,
        *,
        kubelet: Kubelet,
        on_change: Callable[[], None],
    ) -> None:
        """`kubelet` is asked who holds what; `on_change` is called after each change."""
        self._cluster = cluster
        self._fields = f"spec.nodeName={node}"
        self._answers = answers
        self._log = log
        self._kubelet = kubelet
        self._on_change = on_change
        self._refresh = asyncio.Event()
        self._turn = asyncio.Lock()
        """One at a time: a list would bring back a pod whose deletion was seen while the list was on its way."""

    def refresh(self) -> None:
        """Asks for a fresh list."""
        self._refresh.set()

    async def run(self) -> None:
        """Never ends."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch())
            group.create_task(self._list_on_demand())

    async def _watch(self) -> None:
        changes = watching.follow(self._cluster, manifests.POD, fields=self._fields, log=self._log)
        try:
            async for change in changes:
                async with self._turn:
                    if isinstance(change, watching.Synced):
                        await self._list()
                    else:
                        self._see(change.event.object, gone=change.event.type is EventType.DELETED)
        finally:
            await changes.aclose()

    async def _list_on_demand(self) -> None:
        while True:
            await self._refresh.wait()
            self._refresh.clear()
            async with self._turn:
                await self._list()

    async def _list(self) -> None:
        wanted = self._answers.wanted
        try:
            listed = await self._cluster.list(manifests.POD, fields=self._fields)
        except GpuShareError as error:
            self._answers.trouble = str(error)
            self._log.warning("pods of this node not listed", extra={"reason": str(error)})
            with self._answers.changing(listed=wanted):
                return
        self._answers.trouble = ""
        pods = [pod for pod in map(self._read, listed.items) if pod is not None]
        version = int(listed.resource_version) if listed.resource_version.isdecimal() else 0
        told = await self._kubelet.ask()
        holders = told if told is not None else await self._kubelet.read()
        with self._answers.changing(listed=wanted) as flight:
            flight.see_all(pods, version)
            # In the same moment: a pod that has got what it needs must not be taken for one that is about to get it.
            flight.see_holders(holders)
            if told is not None and self._answers.is_waited_for(wanted):
                flight.reopen(told)
        self._on_change()

    def _read(self, manifest: Manifest) -> BoundPod | None:
        return read_pod(manifest, self._answers.mode.dialect)

    def _see(self, manifest: Manifest, *, gone: bool) -> None:
        pod = self._read(manifest)
        if pod is not None:
            with self._answers.changing() as flight:
                if gone:
                    flight.forget(pod.uid)
                else:
                    flight.see(pod)
            self._on_change()
