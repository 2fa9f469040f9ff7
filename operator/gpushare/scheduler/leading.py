"""Which replica decides: one at a time, and only once it knows of everything that the last one has decided. Run by `running`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from gpushare.errors import ClusterRefused, ClusterUnavailable
from gpushare.kube.backoff import Backoff
from gpushare.kube.leading import Lease

_SEPARATOR = "@"
_LOOK_SECONDS = 0.2


def build_identity(name: str, address: str) -> str:
    """What a replica writes into the Lease: its name, and where the others reach it."""
    return f"{name}{_SEPARATOR}{address}"


class Leading:
    """This replica's part in it."""

    def __init__(
        self,
        lease: Lease | None,
        identity: str,
        *,
        prepare: Callable[[bool], Awaitable[None]],
        resign: Callable[[], Awaitable[None]],
        log: logging.Logger,
    ) -> None:
        """Without a Lease, it always leads.

        Args:
            lease: the one that all replicas want.
            identity: what this replica writes into it.
            prepare: waits until all is known that there is; told whether another replica led until now, which may have
                decided something in its last moment.
            resign: ends what was begun, since somebody else may decide now.
            log: is told of failures.
        """
        self._lease = lease
        self._identity = identity
        self._prepare = prepare
        self._resign = resign
        self._log = log
        self.is_leading = False
        self.terms = 0
        """How often it has begun to lead."""
        self._changed = asyncio.Event()

    @property
    def leader(self) -> str:
        """Address of another replica that leads; empty where none is known."""
        holder = "" if self._lease is None else self._lease.holder
        # Our own while we still read what a leader must know.
        return holder.partition(_SEPARATOR)[2] if holder != self._identity else ""

    async def look(self) -> None:
        """Returns once it is known whether another replica leads: what is read from then on is newer than what that decided."""
        if self._lease is not None:
            await self._lease.looked.wait()

    async def wait(self) -> None:
        """Returns when this replica leads, or knows who does."""
        while not (self.is_leading or self.leader):
            self._changed.clear()
            try:
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._changed.wait()
            except TimeoutError:
                # The Lease tells nobody when it finds another holder.
                continue

    async def run(self) -> None:
        """Leads whenever it can, until cancelled; then lets the next one lead at once."""
        try:
            while True:
                await self._serve_a_term()
        finally:
            await self._step_down()
            if self._lease is not None:
                await self._lease.release()

    async def _serve_a_term(self) -> None:
        if self._lease is None:
            await self._prepare_until_done(changed_hands=False)
            self._begin()
            await asyncio.Event().wait()
            return
        changed_hands = await self._lease.acquire() or self.terms > 0
        holding = asyncio.create_task(self._lease.hold())
        preparing = asyncio.create_task(self._prepare_until_done(changed_hands=changed_hands))
        try:
            await asyncio.wait({holding, preparing}, return_when=asyncio.FIRST_COMPLETED)
            if not holding.done():
                preparing.result()  # raises what broke it: nobody leads who does not know everything
                self._begin()
                await holding
        finally:
            for task in (holding, preparing):
                task.cancel()
            await asyncio.wait({holding, preparing})
            await self._step_down()

    async def _prepare_until_done(self, *, changed_hands: bool) -> None:
        backoff = Backoff()
        while True:
            try:
                await self._prepare(changed_hands)
            except (ClusterUnavailable, ClusterRefused) as error:
                self._log.warning("cannot take over yet", extra={"reason": str(error)})
                await asyncio.sleep(backoff.next())
            else:
                return

    def _begin(self) -> None:
        self.terms += 1
        self.is_leading = True
        self._changed.set()

    async def _step_down(self) -> None:
        if self.is_leading:
            self.is_leading = False
            await self._resign()
