"""The life of one plugin server beside a kubelet: serve, register, watch the sockets, begin again. Run by the agent.

Level-triggered: each look compares what is with what should be, so it does not matter which event was missed.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from gpushare.errors import KubeletError
from gpushare.kubelet import registering, sockets
from gpushare.kubelet.plugin import PluginServer

T = TypeVar("T")

POLL_SECONDS = 0.25
"""Between two looks at the sockets; each costs three calls of `stat`."""
STREAM_SECONDS = 5.0
"""A registered plugin without an open ListAndWatch for so long has been lost by the kubelet."""
SETTLE_SECONDS = 0.05
OUTLAST_SECONDS = 1.0
FIRST_RETRY_SECONDS = 0.5
LAST_RETRY_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Standing:
    """How one resource stands with the kubelet."""

    registered: bool
    message: str = ""
    """For people; empty when all is well."""
    is_displaced: bool = False
    """Another device plugin serves it."""


class Retry:
    """When a failing call may be tried again: doubling, capped, with jitter so that the agents of a rack spread."""

    def __init__(self) -> None:
        self._failures = 0
        self.not_before = 0.0
        """In the time of the event loop."""

    def reset(self) -> None:
        """After a success, or when the world has changed."""
        self._failures = 0
        self.not_before = 0.0

    def fail(self, now: float) -> None:
        """After a failure."""
        seconds = min(FIRST_RETRY_SECONDS * 2**self._failures, LAST_RETRY_SECONDS)
        self._failures = min(self._failures + 1, 10)
        self.not_before = now + seconds * random.uniform(0.5, 1.0)  # noqa: S311 - no secret


class Lifecycle:
    """Keeps one plugin server served and registered.

    Two agents on one node (an upgrade, a foreign device plugin) do not fight for a socket: who comes later takes it, the
    other stands by and takes it back once nobody listens there.
    """

    def __init__(
        self,
        server: PluginServer,
        kubelet_socket: Path | None,
        executor: Executor,
        log: logging.Logger,
        *,
        on_change: Callable[[], None] = lambda: None,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        """Without a kubelet socket it serves and never registers. Calls `on_change` when `standing` is another."""
        self.server = server
        self.standing = Standing(registered=False, message="starting")
        self.tried = asyncio.Event()
        """Set once the first attempt has ended, well or not."""
        self._kubelet_socket = kubelet_socket
        self._executor = executor
        self._log = log
        self._on_change = on_change
        self._poll_seconds = poll_seconds
        self._retry = Retry()
        self._was_served = False
        self._predecessor: sockets.Peer | None = None
        self._outlast_until = 0.0
        self._registered_with: sockets.SocketId | None = None
        self._tried: sockets.SocketId | None = None
        self._followed_at = 0.0

    async def run(self) -> None:
        """Looks and acts for ever; ends by being cancelled, after which the server is the caller's to retire or stop."""
        try:
            while True:
                try:
                    if await self._hold_socket():
                        await self._hold_registration()
                except KubeletError as error:
                    self._retry.fail(self._now())
                    self._stand(Standing(registered=False, message=str(error)))
                await asyncio.sleep(self._poll_seconds)
        finally:
            self._forget_predecessor()

    async def _hold_socket(self) -> bool:
        """Sees to it that the server listens; False while another one has its place."""
        if self.server.owns_socket:
            return True
        self._registered_with = None
        if self._was_served and await self._in_thread(sockets.is_alive, self.server.socket):
            await self._to_the_end(self.server.stop)
            message = f"another device plugin serves {self.server.socket}"
            self._stand(Standing(registered=False, message=message, is_displaced=True))
            return False
        if not self._may_try(None):
            return False
        self._forget_predecessor()
        self._predecessor = await self._in_thread(sockets.Peer.connect, self.server.socket)
        await self._to_the_end(self.server.serve)
        self._was_served = True
        self._outlast_until = self._now() + OUTLAST_SECONDS
        return True

    def _must_wait_for_predecessor(self) -> bool:
        """Gives an agent whose socket was taken a moment to notice and to end its streams.

        When a stream of an earlier registration ends after a later one, the kubelet takes the resource for disconnected.
        One that ends only after that moment (a foreign device plugin does not notice) makes us register again.
        """
        if self._predecessor is None:
            return False
        if self._predecessor.has_ended():
            self._forget_predecessor()
            self._registered_with = None
            return False
        return self._now() < self._outlast_until

    def _forget_predecessor(self) -> None:
        if self._predecessor is not None:
            self._predecessor.close()
            self._predecessor = None

    async def _hold_registration(self) -> None:
        """Registers where the kubelet at the socket does not know the plugin, or has lost it."""
        if self._kubelet_socket is None:
            self._stand(Standing(registered=False, message="not registered: no kubelet socket is given"))
            return
        kubelet = sockets.identify(self._kubelet_socket)
        if kubelet is None:
            self._registered_with = None
            self._stand(Standing(registered=False, message=f"no kubelet: {self._kubelet_socket} does not exist"))
            return
        if self._must_wait_for_predecessor() or (kubelet == self._registered_with and self._is_followed()):
            return
        if self._may_try(kubelet):
            await self._register(self._kubelet_socket, kubelet)

    def _is_followed(self) -> bool:
        if self.server.streams:
            self._followed_at = self._now()
            self._retry.reset()
            return True
        return self._now() - self._followed_at < STREAM_SECONDS

    def _may_try(self, kubelet: sockets.SocketId | None) -> bool:
        """A failure is not repeated before its time, unless there is another kubelet by now."""
        if kubelet != self._tried:
            self._retry.reset()
        self._tried = kubelet
        return self._now() >= self._retry.not_before

    async def _register(self, kubelet_socket: Path, kubelet: sockets.SocketId) -> None:
        if self.server.streams:
            # Of an earlier registration: they end before the new one for the reason that `_must_wait_for_predecessor` gives.
            self.server.end_streams()
            await asyncio.sleep(SETTLE_SECONDS)
        try:
            await self._in_thread(registering.register, kubelet_socket, self.server.registration)
        except KubeletError:
            self.server.counts.count_registration(self.server.resource, succeeded=False)
            raise
        self.server.counts.count_registration(self.server.resource, succeeded=True)
        # Each time: a kubelet that has restarted, or lost the plugin, is what people look for.
        self._log.info("registered with the kubelet", extra={"resource": self.server.resource})
        # The identity from before the call: where the kubelet restarted meanwhile, the next look sees another one.
        self._registered_with = kubelet
        self._followed_at = self._now()
        # Repeated only slowly until the kubelet opens a stream, which is what shows that it took the plugin.
        self._retry.fail(self._now())
        self._stand(Standing(registered=True))

    def _stand(self, standing: Standing) -> None:
        if standing == self.standing:
            return
        self.standing = standing
        self.tried.set()
        if not standing.registered:
            extra = {"resource": self.server.resource, "reason": standing.message}
            self._log.warning("not registered with the kubelet", extra=extra)
        self._on_change()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    async def _in_thread(self, function: Callable[..., T], *args: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, function, *args)

    async def _to_the_end(self, function: Callable[[], None]) -> None:
        """In a thread too. A cancellation waits for its end, or whoever stops the server then would be too early to stop it."""
        call = asyncio.get_running_loop().run_in_executor(self._executor, function)
        try:
            await asyncio.shield(call)
        except asyncio.CancelledError:
            await asyncio.wait({call})
            raise
