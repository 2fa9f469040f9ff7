"""What happens to a cluster while pods come and go: pods deleted, agents, kubelets and the scheduler restarted, at random."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.sandbox.app import Sandbox
from support.clusters import NAMESPACE

BACK_SECONDS = 60.0
_LOOK_SECONDS = 0.05


@dataclass
class Window:
    """While something of a node was not there, by the clock of `time.monotonic`."""

    node: str
    what: str
    begin: float
    end: float = float("inf")


class Disturbances:
    """Does harm, and notes when."""

    def __init__(self, sandbox: Sandbox, dice: random.Random) -> None:
        self._sandbox = sandbox
        self._cluster = sandbox.cluster
        self._dice = dice
        self.windows: list[Window] = []
        self.done: Counter[str] = Counter()

    async def go_on(self, rounds: int) -> None:
        """So many restarts of each kind, one after another of its kind, and pods deleted all the while."""
        deleting = asyncio.create_task(self._delete_for_ever())
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._repeat(rounds, self._restart_agent))
                group.create_task(self._repeat(rounds, self._restart_kubelet))
                group.create_task(self._repeat(rounds, self._restart_scheduler))
        finally:
            deleting.cancel()
            await asyncio.wait({deleting})
        if not deleting.cancelled():
            deleting.result()

    async def _repeat(self, rounds: int, deed: Callable[[], Awaitable[None]]) -> None:
        for _ in range(rounds):
            await asyncio.sleep(self._dice.uniform(0.5, 2.5))
            await deed()

    async def _delete_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._dice.uniform(0.2, 1.0))
            pods = sorted(await self._cluster.names(manifests.POD, "default"))
            for name in self._dice.sample(pods, min(2, len(pods))):
                self.done["pods deleted"] += await self._cluster.delete(manifests.POD, name, "default")

    async def _restart_scheduler(self) -> None:
        before = await self._pods(names.SCHEDULER)
        for pod in before:
            await self._cluster.delete(manifests.POD, pod["metadata"]["name"], NAMESPACE)
        await self._until_ready(names.SCHEDULER, {pod["metadata"]["uid"] for pod in before})
        self.done["schedulers"] += 1

    async def _restart_agent(self) -> None:
        node = self._dice.choice(self._nodes)
        before = await self._pods(names.DAEMONSET_DEVICE_PLUGIN, node)
        window = self._open(node, "agent")
        for pod in before:
            await self._cluster.delete(manifests.POD, pod["metadata"]["name"], NAMESPACE)
        await self._until_ready(names.DAEMONSET_DEVICE_PLUGIN, {pod["metadata"]["uid"] for pod in before}, node)
        await self._close(window)

    async def _restart_kubelet(self) -> None:
        node = self._dice.choice(self._nodes)
        window = self._open(node, "kubelet")
        assert self._sandbox.fleet is not None
        await self._sandbox.fleet.nodes[node].restart()
        await self._close(window)

    @property
    def _nodes(self) -> list[str]:
        return [node.spec.name for node in self._sandbox.scenario.nodes]

    def _open(self, node: str, what: str) -> Window:
        window = Window(node, what, time.monotonic())
        self.windows.append(window)
        return window

    async def _close(self, window: Window) -> None:
        """Ends once the node offers what it did."""

        async def offers() -> bool:
            node = await self._cluster.get(manifests.NODE, window.node)
            allocatable = node["status"]["allocatable"] if node else {}
            return any(int(allocatable.get(name, 0)) for name in (names.RESOURCE_GPU, names.RESOURCE_ALIYUN_MEM))

        await self._until(offers)
        window.end = time.monotonic()
        self.done[f"{window.what}s"] += 1

    async def _until_ready(self, app: str, but: set[str], node: str = "") -> None:
        async def is_ready() -> bool:
            found = [pod for pod in await self._pods(app, node) if pod["metadata"]["uid"] not in but]
            return bool(found) and all(map(_is_ready, found))

        await self._until(is_ready)

    async def _until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(BACK_SECONDS):
            while not await holds():  # noqa: ASYNC110 - seldom enough, and simpler than a watch for each
                await asyncio.sleep(_LOOK_SECONDS)

    async def _pods(self, app: str, node: str = "") -> tuple[Manifest, ...]:
        fields = f"spec.nodeName={node}" if node else ""
        return (await self._cluster.list(manifests.POD, NAMESPACE, labels=f"app={app}", fields=fields)).items


def _is_ready(pod: Manifest) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
