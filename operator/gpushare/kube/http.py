"""One HTTP/1.1 connection: h11 for the protocol, asyncio streams for the bytes. Used by `pool` only."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

import h11

_READ_BYTES = 1 << 18
_CONNECT_SECONDS = 10.0
_CUT_OFF = "the server closed the connection in the middle of an answer"
_KEEPALIVE = (
    # A node that loses its network notices within half a minute, in the middle of a silent watch too.
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
)

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where to connect to and what to verify there."""

    host: str
    port: int
    path: str = ""
    """Stands before every path, for API servers behind a proxy."""
    tls: ssl.SSLContext | None = None
    server_name: str = ""

    @classmethod
    def parse(cls, url: str, tls: ssl.SSLContext | None, server_name: str = "") -> Self:
        """Reads `https://host:port/path`. Raises ValueError where that is no URL."""
        parts = urlsplit(url)
        if not parts.hostname:
            raise ValueError(f"{url!r} is no URL: expected https://host:port")
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return cls(host=parts.hostname, port=port, path=parts.path.rstrip("/"), tls=tls, server_name=server_name)

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Connection:
    """Carries one request after the other. Every method raises OSError or h11.RemoteProtocolError when it breaks."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._protocol = h11.Connection(h11.CLIENT)
        self._idle_since = time.monotonic()

    @classmethod
    async def open(cls, address: Address) -> Self:
        """Connects, and shakes hands where there is TLS."""
        server_name = (address.server_name or address.host) if address.tls else None
        async with asyncio.timeout(_CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection(
                address.host, address.port, ssl=address.tls, server_hostname=server_name, limit=_READ_BYTES
            )
        for level, option, value in _KEEPALIVE:
            writer.get_extra_info("socket").setsockopt(level, option, value)
        return cls(reader, writer)

    async def request(self, method: str, target: str, headers: Headers, body: bytes) -> int:
        """Sends a whole request and reads the head of the answer. Returns its status."""
        head = h11.Request(method=method, target=target, headers=[*headers, ("Content-Length", str(len(body)))])
        out = self._protocol.send(head) or b""
        if body:
            out += self._protocol.send(h11.Data(data=body)) or b""
        self._writer.write(out + (self._protocol.send(h11.EndOfMessage()) or b""))
        await self._writer.drain()
        while True:
            event = await self._event()
            if isinstance(event, h11.Response):
                return event.status_code

    async def chunk(self) -> bytes:
        """The next part of the answer's body as it arrives; empty at its end."""
        while True:
            event = await self._event()
            if isinstance(event, h11.EndOfMessage):
                return b""
            if isinstance(event, h11.Data) and event.data:
                return bytes(event.data)

    async def body(self) -> bytes:
        """The rest of the answer's body."""
        chunks = []
        while chunk := await self.chunk():
            chunks.append(chunk)
        return b"".join(chunks)

    def finish(self) -> bool:
        """To be called after the body: whether another request can follow."""
        self._idle_since = time.monotonic()
        if self._protocol.our_state is not h11.DONE or self._protocol.their_state is not h11.DONE:
            return False
        self._protocol.start_next_cycle()
        return True

    def is_fresh(self, seconds: float) -> bool:
        """Whether it is open still, and idle for less than `seconds`: older ones the server may just be closing."""
        idle = time.monotonic() - self._idle_since
        return idle < seconds and not self._reader.at_eof() and not self._writer.is_closing()

    async def close(self) -> None:
        """Hangs up at once; there is nobody to say goodbye to."""
        self._writer.transport.abort()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    def abort(self) -> None:
        """As `close`, where nobody can wait."""
        self._writer.transport.abort()

    async def _event(self) -> h11.Event:
        while True:
            event = self._next_event()
            if event is h11.NEED_DATA:
                self._protocol.receive_data(await self._reader.read(_READ_BYTES))
            elif isinstance(event, h11.ConnectionClosed) or event is h11.PAUSED:
                raise ConnectionResetError(_CUT_OFF)
            else:
                assert isinstance(event, h11.Event)
                return event

    def _next_event(self) -> object:
        try:
            return self._protocol.next_event()
        except h11.RemoteProtocolError as error:
            if self._reader.at_eof():
                # h11's own words would speak of its states.
                raise ConnectionResetError(_CUT_OFF) from error
            raise
