"""A small HTTP/1.1 server: h11 for the protocol, asyncio streams for the bytes.

Serves metrics and health of every process, and the logs of simulated nodes. An agent starts it after its first list,
and pays 2 MB for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TypeAlias, cast
from urllib.parse import parse_qs, unquote, urlsplit

import h11

from gpushare.serving import closing

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"

_READ_BYTES = 1 << 16
MAX_BODY_BYTES = 4 * 1024 * 1024
_IDLE_SECONDS = 75.0
"""An idle connection is closed after that, and so is one that is slow to say what it wants."""
_BROKEN = (OSError, h11.RemoteProtocolError, h11.LocalProtocolError, asyncio.IncompleteReadError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request, whole."""

    method: str
    path: str
    """Decoded, without the query."""
    query: Mapping[str, str] = field(default_factory=dict)
    """First value of each parameter; empty ones are there too."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case."""
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """One answer. An iterator as body is sent piece by piece, as it comes."""

    status: int = 200
    body: bytes | AsyncIterator[bytes] = b""
    content_type: str = TEXT


Handler: TypeAlias = Callable[[Request], Awaitable[Response]]


class HttpServer:
    """Answers every request by one handler. A handler that raises is logged and answered with 500."""

    def __init__(self, handler: Handler, log: logging.Logger, *, most_bytes: int = MAX_BODY_BYTES) -> None:
        """`most_bytes`: a request with a longer body is refused with 413."""
        self._handler = handler
        self._log = log
        self._most_bytes = most_bytes
        self._tls: ssl.SSLContext | None = None
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int, *, tls: ssl.SSLContext | None = None) -> int:
        """Listens and returns the port (that of IPv4, where there are two), which the system chooses where it is 0.

        Raises:
            OSError: the address cannot be had.
        """
        self._tls = tls
        # Bound first and then opened, so that there is something to stop for whoever is cancelled while it opens.
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._build_protocol, host, port, start_serving=False)
        try:
            # The sockets stand in any order, and ports that the system chooses differ between IPv4 and IPv6.
            found = int(min(self._server.sockets, key=lambda each: each.family).getsockname()[1])
            await self._server.start_serving()
        except BaseException:
            await self.stop()
            raise
        return found

    async def stop(self) -> None:
        """Stops listening and ends every connection, also when it is cancelled meanwhile. Safe to call twice."""
        if self._server is None:
            return
        server, self._server = self._server, None
        await closing.finish(self._end(server))

    async def _end(self, server: asyncio.Server) -> None:
        await closing.close(server)
        connections = tuple(self._connections)
        for connection in connections:
            connection.cancel()
        if connections:
            await asyncio.wait(connections)
        await server.wait_closed()

    def _build_protocol(self) -> asyncio.BaseProtocol:
        return _Streams(asyncio.StreamReader(), self._accept, is_tls=self._tls is not None)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # No coroutine, which would begin a turn later: from its first moment on, `stop` has to know the connection.
        if self._tls is not None:
            # Nothing is read before the handshake begins, to which it belongs.
            cast("asyncio.Transport", writer.transport).pause_reading()
        task = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            self._connections.discard(task)
            # `_serve` closes it at its end, but not where it is cancelled before it begins, in its handshake, or while it closes.
            writer.transport.abort()

        task.add_done_callback(ended)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self._tls is not None:
                await writer.start_tls(self._tls)
            await self._answer_all(reader, writer)
        except _BROKEN as error:
            # The client went or speaks no HTTP; nobody is left to be told.
            self._log.debug("connection ended early", extra={"reason": str(error)})

    async def _answer_all(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _Connection(self._handler, self._log, self._most_bytes, reader, writer).run()
        except asyncio.CancelledError:
            # By `stop`, which does not wait for a client that does not read.
            writer.transport.abort()
            raise
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


class _Streams(asyncio.StreamReaderProtocol):
    """The streams of one connection, whose client may leave before they are told that they are TLS."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        accept: Callable[[asyncio.StreamReader, asyncio.StreamWriter], None],
        *,
        is_tls: bool,
    ) -> None:
        super().__init__(reader, accept)
        self._is_tls = is_tls

    def eof_received(self) -> bool:
        """Whether one half of the connection stays, which TLS does not have."""
        return bool(super().eof_received()) and not self._is_tls


class _Connection:
    """One client, from its first request to its last."""

    def __init__(
        self,
        handler: Handler,
        log: logging.Logger,
        most_bytes: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._handler = handler
        self._log = log
        self._most_bytes = most_bytes
        self._reader = reader
        self._writer = writer
        self._protocol = h11.Connection(h11.SERVER)

    async def run(self) -> None:
        try:
            while (request := await self._read_request()) is not None:
                await self._send(await self._answer(request), head_only=request.method == "HEAD")
                if self._protocol.our_state is not h11.DONE or self._protocol.their_state is not h11.DONE:
                    return
                self._protocol.start_next_cycle()
        except h11.RemoteProtocolError as error:
            if self._protocol.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
                body = f"{error}\n".encode()
                await self._send(Response(status=error.error_status_hint, body=body), head_only=False)
            raise

    async def _answer(self, request: Request) -> Response:
        try:
            return await self._handler(request)
        except Exception:  # noqa: BLE001 - one broken answer must not end the server
            self._log.exception("request failed", extra={"method": request.method, "path": request.path})
            return Response(status=500, body=b"internal error: see the log\n")

    async def _read_request(self) -> Request | None:
        head: h11.Request | None = None
        body = bytearray()
        while True:
            event = await self._next_event()
            if isinstance(event, h11.Request):
                head = event
                # Said before it is read: a client that is still sending would not hear it.
                self._check_length(int(dict(head.headers).get(b"content-length", b"0")))
            elif isinstance(event, h11.Data):
                body += event.data
                self._check_length(len(body))
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                return _request_of(head, bytes(body))
            else:
                return None

    def _check_length(self, length: int) -> None:
        if length > self._most_bytes:
            raise h11.RemoteProtocolError("request body too long", error_status_hint=413)

    async def _next_event(self) -> object:
        while (event := self._protocol.next_event()) is h11.NEED_DATA:
            if self._protocol.they_are_waiting_for_100_continue:
                await self._write(h11.InformationalResponse(status_code=100, headers=[]))
            try:
                async with asyncio.timeout(_IDLE_SECONDS):
                    received = await self._reader.read(_READ_BYTES)
            except TimeoutError:
                return None
            self._protocol.receive_data(received)
        return event

    async def _send(self, response: Response, *, head_only: bool) -> None:
        # A streamed answer is the last one: while it goes out, anything that comes in only tells whether the client is there.
        framing = (
            [("Content-Length", str(len(response.body)))]
            if isinstance(response.body, bytes)
            else [("Transfer-Encoding", "chunked"), ("Connection", "close")]
        )
        headers = [("Content-Type", response.content_type), *framing]
        reason = HTTPStatus(response.status).phrase.encode()
        await self._write(h11.Response(status_code=response.status, headers=headers, reason=reason))
        if head_only:
            pass
        elif not isinstance(response.body, bytes):
            await self._stream(response.body)
        elif response.body:
            await self._write(h11.Data(data=response.body))
        await self._write(h11.EndOfMessage())

    async def _stream(self, body: AsyncIterator[bytes]) -> None:
        """Sends what comes, until it ends or the client has gone, which an answer that is silent would not notice."""
        sending = asyncio.create_task(self._send_chunks(body))
        leaving = asyncio.create_task(self._client_leaves())
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not sending.done():
                raise ConnectionResetError("the client has gone")
            await sending
        finally:
            sending.cancel()
            leaving.cancel()
            await asyncio.wait({sending, leaving})

    async def _send_chunks(self, body: AsyncIterator[bytes]) -> None:
        async for chunk in body:
            if chunk:
                await self._write(h11.Data(data=chunk))

    async def _client_leaves(self) -> None:
        with contextlib.suppress(OSError):
            while await self._reader.read(_READ_BYTES):
                pass

    async def _write(self, event: h11.Event) -> None:
        data = self._protocol.send(event)
        if data:
            self._writer.write(data)
            await self._writer.drain()


def _request_of(head: h11.Request, body: bytes) -> Request:
    parts = urlsplit(head.target.decode("ascii"))
    return Request(
        method=head.method.decode("ascii"),
        path=unquote(parts.path),
        query={name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()},
        headers={name.decode("ascii"): value.decode("latin-1") for name, value in head.headers},
        body=body,
    )
