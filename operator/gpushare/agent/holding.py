"""Watches who holds which devices, as the kubelet tells it. Run by the agent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from pathlib import Path

from gpushare.errors import KubeletError
from gpushare.kubelet.values import ContainerDevices

POLL_SECONDS = 10.0
"""Nobody tells when a pod goes."""
PAUSE_SECONDS = 0.8
"""Between two readings at least; a status is published once a second at most."""
AGAIN_SECONDS = 0.5
AFTER_ALLOCATE_SECONDS = 0.1
"""The kubelet writes down what it has given to whom just after the answer."""


class HolderWatch:
    """Keeps `holders` true, as far as the kubelet answers."""

    def __init__(
        self, socket: Path, executor: Executor, *, on_read: Callable[[], None], on_change: Callable[[], None]
    ) -> None:
        """Calls `on_read` after each reading, and `on_change` after the first answer and each one that differs from the last."""
        self.holders: Sequence[ContainerDevices] = ()
        """In order of namespace, pod and container."""
        self.is_known = False
        """Whether `holders` is what the kubelet has told, be it a while ago; else nobody knows, which is not nobody."""
        self.awaits_more: Callable[[], bool] | None = None
        """Says whether the kubelet has yet to tell of an Allocate; then it is asked again soon. None: nobody waits for it, so
        that there is a pause between two readings."""
        self._socket = socket
        self._executor = executor
        self._on_read = on_read
        self._on_change = on_change
        self._loop = asyncio.get_running_loop()
        self._allocated = asyncio.Event()
        self._is_told = False
        self._told: Sequence[ContainerDevices] | None = None
        """As the kubelet told last; None: it has not answered yet."""

    def see_allocate(self) -> None:
        """Something was given out just now. Called in threads of plugin servers.

        Wakes the event loop once for many, since waking it would make each of their answers slower.
        """
        if not self._is_told:
            self._is_told = True
            self._loop.call_soon_threadsafe(self._allocated.set)

    async def run(self) -> None:
        """Reads after each Allocate and now and then, for ever; ends by being cancelled."""
        while True:
            before = self.holders if self.is_known else None
            self.holders = await self.read()
            self.is_known = self._told is not None
            self._on_read()
            if self._told is not None and self.holders != before:
                self._on_change()
            if self.awaits_more is None:
                await asyncio.sleep(PAUSE_SECONDS)
            seconds = AGAIN_SECONDS if self.awaits_more is not None and self.awaits_more() else POLL_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._allocated.wait()
            # In this order, and before it is read: an Allocate from now on is told again rather than lost.
            self._is_told = False
            self._allocated.clear()
            await asyncio.sleep(AFTER_ALLOCATE_SECONDS)

    async def ask(self) -> Sequence[ContainerDevices] | None:
        """Asks now; None where the kubelet does not answer."""
        from gpushare.kubelet.podresources import read_holders  # late: after the first list

        try:
            found = await self._loop.run_in_executor(self._executor, read_holders, self._socket)
        except KubeletError:
            return None
        self._told = tuple(sorted(found, key=lambda holder: (holder.namespace, holder.pod, holder.container)))
        return self._told

    async def read(self) -> Sequence[ContainerDevices]:
        """Asks now; as last known where the kubelet does not answer."""
        return await self.read_known() or ()

    async def read_known(self) -> Sequence[ContainerDevices] | None:
        """The same; None where the kubelet has never answered yet."""
        await self.ask()
        return self._told

    async def until_known(self) -> None:
        """Returns once the kubelet has answered; it may be starting just as the agent is."""
        while await self.read_known() is None:  # noqa: ASYNC110 - the kubelet tells nobody
            await asyncio.sleep(AGAIN_SECONDS)
