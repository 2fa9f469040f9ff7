"""An HTTP server that answers as a test tells it, byte for byte, to see what a client makes of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from gpushare.serving import closing


@dataclass(frozen=True)
class Seen:
    """One request as it came."""

    line: str
    headers: dict[str, str]
    body: bytes
    connection: int


class HangUpError(Exception):
    """Raised by a script to close the connection where it stands."""


Script = Callable[[Seen, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class ScriptedServer:
    """Plays its scripts, one a request, the last one for ever."""

    scripts: list[Script]
    requests: list[Seen] = field(default_factory=list)
    connections: int = 0
    url: str = ""
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[ScriptedServer]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            await closing.close(server)
            self.hang_up()
            await server.wait_closed()

    def hang_up(self) -> None:
        """Closes every connection, as a server does that goes away or has waited long enough."""
        for writer in self._writers:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        self._writers.add(writer)
        try:
            while line := await reader.readline():
                headers = {}
                while header := (await reader.readline()).strip():
                    name, _, value = header.decode().partition(":")
                    headers[name.lower()] = value.strip()
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                seen = Seen(line.decode().strip(), headers, body, number)
                self.requests.append(seen)
                script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
                await script(seen, writer)
                await writer.drain()
        except (HangUpError, ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()


def answer(body: Any, code: int = 200) -> Script:
    """A whole answer."""

    async def script(_: Seen, writer: asyncio.StreamWriter) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        writer.write(f"HTTP/1.1 {code} X\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)

    return script


def chunked(*parts: bytes, then: Callable[[], Awaitable[None]] | None = None, whole: bool = True) -> Script:
    """An answer in chunks, cut where the test cuts it; not `whole`: the connection ends in the middle."""

    async def script(_: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for part in parts:
            writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
            await writer.drain()
            await asyncio.sleep(0)
        if then is not None:
            await then()
        if not whole:
            raise HangUpError
        writer.write(b"0\r\n\r\n")

    return script
