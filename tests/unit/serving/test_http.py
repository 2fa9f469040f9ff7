"""The small HTTP server, asked by the standard library's client, by others' bytes, and by clients that leave."""

from __future__ import annotations

import asyncio
import http.client
import logging
from collections.abc import AsyncIterator

import pytest

from gpushare.serving.http import HttpServer, Request, Response

LOG = logging.getLogger("test")


class Serving:
    """A server with a handler that shows what it got."""

    def __init__(self) -> None:
        self.left = asyncio.Event()
        self.server = HttpServer(self.answer, LOG)
        self.port = 0

    async def answer(self, request: Request) -> Response:
        if request.path == "/broken":
            raise RuntimeError("no")
        if request.path == "/stream":
            return Response(body=self.stream(forever="forever" in request.query))
        text = f"{request.method} {request.path} {dict(request.query)} {request.headers.get('x-a')} {request.body!r}"
        return Response(body=text.encode(), status=404 if request.path == "/none" else 200)

    async def stream(self, *, forever: bool) -> AsyncIterator[bytes]:
        try:
            yield b"one\n"
            yield b""
            yield b"two\n"
            if forever:
                await asyncio.Event().wait()
        finally:
            self.left.set()

    async def raw(self, sent: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(sent)
        writer.write_eof()
        received = await reader.read()
        writer.close()
        await writer.wait_closed()
        return received


@pytest.fixture
async def serving() -> AsyncIterator[Serving]:
    serving = Serving()
    serving.port = await serving.server.start("127.0.0.1", 0)
    yield serving
    await serving.server.stop()


async def ask(serving: Serving, *requests: tuple[str, str, bytes]) -> list[tuple[int, str]]:
    """All requests over one connection."""

    def in_thread() -> list[tuple[int, str]]:
        client = http.client.HTTPConnection("127.0.0.1", serving.port, timeout=60)
        answers = []
        for method, path, body in requests:
            client.request(method, path, body=body or None, headers={"X-A": "b"})
            answer = client.getresponse()
            answers.append((answer.status, answer.read().decode()))
        client.close()
        return answers

    return await asyncio.to_thread(in_thread)


async def test_requests_over_one_connection(serving: Serving) -> None:
    """Path, query, headers and body arrive; the connection stays."""
    answers = await ask(
        serving,
        ("GET", "/a%20b?c=d&e=", b""),
        ("POST", "/p", b"body"),
        ("GET", "/none", b""),
        ("HEAD", "/a", b""),
        ("GET", "/z", b""),
    )

    assert answers == [
        (200, "GET /a b {'c': 'd', 'e': ''} b b''"),
        (200, "POST /p {} b b'body'"),
        (404, "GET /none {} b b''"),
        (200, ""),
        (200, "GET /z {} b b''"),
    ]


async def test_broken_handler(serving: Serving, caplog: pytest.LogCaptureFixture) -> None:
    """The client is told, the log knows why, the server goes on."""
    assert await ask(serving, ("GET", "/broken", b""), ("GET", "/a", b"")) == [
        (500, "internal error: see the log\n"),
        (200, "GET /a {} b b''"),
    ]
    assert "request failed" in caplog.text


async def test_stream(serving: Serving) -> None:
    """Pieces go out as they come."""
    assert await ask(serving, ("GET", "/stream", b"")) == [(200, "one\ntwo\n")]


async def test_client_leaves_a_silent_stream(serving: Serving) -> None:
    """The body is told to end though it has nothing to send."""
    reader, writer = await asyncio.open_connection("127.0.0.1", serving.port)
    writer.write(b"GET /stream?forever HTTP/1.1\r\nHost: a\r\n\r\n")
    await reader.readuntil(b"two\n")
    writer.close()
    await writer.wait_closed()

    async with asyncio.timeout(60):
        await serving.left.wait()


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        pytest.param(b"hello\r\n\r\n", b"HTTP/1.1 400 ", id="no HTTP"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 400 ", id="no host"),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5000000\r\n\r\n",
            b"HTTP/1.1 413 ",
            id="too long",
        ),
        pytest.param(b"", b"", id="nothing"),
    ],
)
async def test_bad_requests(serving: Serving, sent: bytes, expected: bytes) -> None:
    """Whoever speaks nonsense is told so, or left alone."""
    assert (await serving.raw(sent)).startswith(expected)


async def test_expect_continue(serving: Serving) -> None:
    """A client that asks before it sends is answered."""
    received = await serving.raw(
        b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx"
    )
    assert b"200 OK" in received


async def test_stop_ends_open_connections(serving: Serving) -> None:
    """Nobody keeps a process from ending."""
    reader, writer = await asyncio.open_connection("127.0.0.1", serving.port)
    writer.write(b"GET /stream?forever HTTP/1.1\r\nHost: a\r\n\r\n")
    await reader.readuntil(b"two\n")

    await serving.server.stop()
    await serving.server.stop()

    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await reader.readexactly(100)
    writer.close()
    await writer.wait_closed()
