"""A wire to a server that a test can cut and mend: what a client sees when the network or the API server goes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from gpushare.serving import closing


class Wire:
    """Passes bytes on to a port of this machine. While it is cut, connections end at once."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._is_cut = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._connections: set[asyncio.Task[None]] = set()
        self.port = 0

    @classmethod
    @contextlib.asynccontextmanager
    async def to(cls, port: int) -> AsyncIterator[Wire]:
        wire = cls(port)
        server = await asyncio.start_server(wire._accept, "127.0.0.1", 0)
        wire.port = server.sockets[0].getsockname()[1]
        try:
            yield wire
        finally:
            await closing.close(server)
            wire.cut()
            connections = tuple(wire._connections)
            for connection in connections:
                connection.cancel()
            if connections:
                await asyncio.wait(connections)

    def cut(self) -> None:
        """Ends every connection, and each new one."""
        self._is_cut = True
        for writer in self._writers:
            writer.transport.abort()

    def mend(self) -> None:
        self._is_cut = False

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        task = asyncio.create_task(self._connect(reader, writer))
        self._connections.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            self._connections.discard(task)
            self._writers.discard(writer)
            writer.transport.abort()

        task.add_done_callback(ended)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            return
        with contextlib.suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
            try:
                await self._pass_both(reader, writer, far_reader, far_writer)
            finally:
                far_writer.transport.abort()

    async def _pass_both(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        far_reader: asyncio.StreamReader,
        far_writer: asyncio.StreamWriter,
    ) -> None:
        passing = [asyncio.create_task(_pass(*way)) for way in ((reader, far_writer), (far_reader, writer))]
        try:
            await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in passing:
                one.cancel()
            await asyncio.wait(passing)


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while received := await reader.read(65536):
            writer.write(received)
            await writer.drain()
