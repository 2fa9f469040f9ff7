"""A wire to a server that a test can cut and mend: what a client sees when the network or the API server goes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator


class Wire:
    """Passes bytes on to a port of this machine. While it is cut, connections end at once."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._is_cut = False
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0

    @classmethod
    @contextlib.asynccontextmanager
    async def to(cls, port: int) -> AsyncIterator[Wire]:
        wire = cls(port)
        server = await asyncio.start_server(wire._connected, "127.0.0.1", 0)
        wire.port = server.sockets[0].getsockname()[1]
        try:
            yield wire
        finally:
            server.close()
            wire.cut()
            await server.wait_closed()

    def cut(self) -> None:
        """Ends every connection, and each new one."""
        self._is_cut = True
        for writer in self._writers:
            writer.transport.abort()

    def mend(self) -> None:
        self._is_cut = False

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        pair = {writer, far_writer}
        self._writers |= pair
        passing = [asyncio.create_task(_pass(*way)) for way in ((reader, far_writer), (far_reader, writer))]
        await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
        self._writers -= pair
        for one in pair:
            one.transport.abort()
        await asyncio.wait(passing)


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while received := await reader.read(65536):
            writer.write(received)
            await writer.drain()
