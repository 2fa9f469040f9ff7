"""Brings what is served to the kubelet to what should be, by the difference. Used by the agent's passes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from gpushare.agent.keeping import keep
from gpushare.domain.pools import Pool
from gpushare.kubelet.counting import Counts
from gpushare.kubelet.lifecycle import Lifecycle, Standing
from gpushare.kubelet.plugin import PluginServer
from gpushare.kubelet.values import Answers
from gpushare.sharing import diffing

FIRST_ATTEMPT_SECONDS = 1.0
"""How long everything that comes after waits for a new resource to be registered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubelet:
    """Where the kubelet is."""

    plugins: Path
    """Directory of the plugins' sockets."""
    socket: Path | None
    """Where to register; None: nowhere."""


@dataclass(frozen=True, slots=True)
class _Served:
    server: PluginServer
    life: Lifecycle
    task: asyncio.Task[None]


class ServingPools:
    """The plugin servers of an agent, one a resource."""

    def __init__(
        self,
        kubelet: Kubelet,
        answers: Answers,
        executor: Executor,
        log: logging.Logger,
        *,
        on_change: Callable[[], None],
    ) -> None:
        """Calls `on_change` when a resource stands differently with the kubelet."""
        self._kubelet = kubelet
        self._answers = answers
        self._executor = executor
        self._log = log
        self._on_change = on_change
        self.counts = Counts()
        """What has happened with the kubelet, also of resources that are served no longer."""
        self._served: dict[str, _Served] = {}

    @property
    def pools(self) -> Mapping[str, Pool]:
        """What is served, by resource."""
        return {name: served.server.pool for name, served in self._served.items()}

    @property
    def streams(self) -> Mapping[str, int]:
        """How many clients follow the list of each resource; one is the kubelet."""
        return {name: served.server.streams for name, served in self._served.items()}

    @property
    def standings(self) -> Mapping[str, Standing]:
        """How each resource stands with the kubelet."""
        return {name: served.life.standing for name, served in self._served.items()}

    async def apply(self, wanted: Mapping[str, Pool]) -> None:
        """Brings the plugin servers to `wanted`; what does not change is not touched."""
        changes = diffing.build_changes(self.pools, wanted)
        if changes.is_empty:
            return
        emptied = {name: pool for name, pool in changes.update.items() if not pool.shares}
        for name, pool in changes.update.items():
            if name not in emptied:
                self._served[name].server.offer(pool)
        for name, pool in changes.start.items():
            self._served[name] = self._start(pool)
        await self._wait_for(changes.start)
        # Last, so that a renamed resource is there before the old name goes: pods in between find one of the two.
        for name, pool in emptied.items():
            self._served[name].server.offer(pool)
        for name in changes.retire:
            await self._end(self._served.pop(name), PluginServer.retire)
        await self._wait_told(changes.update)
        self._log.info(
            "pools applied",
            extra={
                "updated": sorted(changes.update),
                "started": sorted(changes.start),
                "retired": sorted(changes.retire),
                "shares": {name: len(pool.shares) for name, pool in wanted.items()},
            },
        )

    async def stop(self) -> None:
        """Ends all servers, without a word to the kubelet: the agent is back in a moment, and its pods keep what they have."""
        served, self._served = tuple(self._served.values()), {}
        await asyncio.gather(*(self._end(one, PluginServer.stop) for one in served))

    def _start(self, pool: Pool) -> _Served:
        server = PluginServer(self._kubelet.plugins, pool, self._answers, self._log, counts=self.counts)
        life = Lifecycle(server, self._kubelet.socket, self._executor, self._log, on_change=self._on_change)
        return _Served(
            server, life, asyncio.create_task(keep(life.run, self._log), name=f"lifecycle of {pool.resource}")
        )

    async def _wait_for(self, names: Mapping[str, Pool]) -> None:
        """Until each has met the kubelet once, so that the first report tells how that went."""
        if not names:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_ATTEMPT_SECONDS):
                await asyncio.gather(*(self._served[name].life.tried.wait() for name in names))

    async def _wait_told(self, names: Mapping[str, Pool]) -> None:
        """Until the kubelet has the new lists: what is reported as applied is so for pods too."""
        loop = asyncio.get_running_loop()
        waits = (loop.run_in_executor(self._executor, self._served[name].server.wait_told) for name in names)
        await asyncio.gather(*waits)

    async def _end(self, served: _Served, how: Callable[[PluginServer], None]) -> None:
        served.task.cancel()
        await asyncio.wait([served.task])
        await asyncio.get_running_loop().run_in_executor(self._executor, how, served.server)
