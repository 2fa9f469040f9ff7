"""Connections to one API server that wait for their next request. Used by `lean`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gpushare.kube.http import Address, Connection

_IDLE_SECONDS = 30.0
"""Servers close idle connections after 60 seconds and more; a request must never meet that moment."""


class Pool:
    """Lends connections. What comes back whole is used again; the newest first, so that the others grow old."""

    def __init__(self, address: Address, *, most: int) -> None:
        self._address = address
        self._idle: list[Connection] = []
        self._lent: set[Connection] = set()
        self._room = asyncio.Semaphore(most)
        self._closed = False

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[Connection]:
        """A connection for one request; waits while `most` are lent. One that is not used to its end is hung up."""
        async with self._room, self.lend_apart() as connection:
            yield connection

    @asynccontextmanager
    async def lend_apart(self) -> AsyncIterator[Connection]:
        """As `lend`, outside the limit: watches last for minutes and must not starve requests."""
        connection = await self._take()
        self._lent.add(connection)
        reusable = False
        try:
            yield connection
            reusable = connection.finish() and not self._closed
        finally:
            self._lent.discard(connection)
            if reusable:
                self._idle.append(connection)
            else:
                connection.abort()

    async def _take(self) -> Connection:
        if self._closed:
            raise ConnectionAbortedError("the client is closed")
        while self._idle:
            connection = self._idle.pop()
            if connection.is_fresh(_IDLE_SECONDS):
                return connection
            await connection.close()
        return await Connection.open(self._address)

    async def close(self) -> None:
        """Hangs up all connections, lent ones too: who reads from them gets an error."""
        self._closed = True
        connections = [*self._idle, *self._lent]
        self._idle.clear()
        # All are hung up before any is waited for, since the waiting may be cancelled.
        for connection in connections:
            connection.abort()
        for connection in connections:
            await connection.close()
