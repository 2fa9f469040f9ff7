"""Servers that start and end at any moment, whoever is just connecting."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator

import pytest

from gpushare.serving import closing
from gpushare.serving.certificates import Authority
from gpushare.serving.http import HttpServer, Request, Response

LOG = logging.getLogger("test")
HOST = "127.0.0.1"
TURNS = range(10)
"""Of the loop: more than a connection takes from the first sign of it to its first request."""
SECONDS = 20.0


async def answer(_: Request) -> Response:
    await asyncio.Event().wait()
    return Response()


@contextlib.contextmanager
def client(port: int) -> Iterator[socket.socket]:
    """Connected by the kernel, before the server has looked; asks for something that is never answered."""
    with socket.create_connection((HOST, port), timeout=SECONDS) as found:
        found.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        yield found


def is_closed(connection: socket.socket) -> bool:
    """Whether the server hangs up. Raises TimeoutError when it does not."""
    try:
        return connection.recv(100) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("turns", TURNS)
@pytest.mark.parametrize("has_tls", [False, True], ids=["plain", "in its handshake"])
async def test_stop_hangs_up_whoever_has_just_come(turns: int, has_tls: bool) -> None:
    """Wherever it stands between its acceptance and its answer, a connection ends with its server."""
    server = HttpServer(answer, LOG)
    tls = Authority.create("test").server_context("test", [HOST]) if has_tls else None
    with client(await server.start(HOST, 0, tls=tls)) as connection:
        for _ in range(turns):
            await asyncio.sleep(0)
        await server.stop()
        assert await asyncio.to_thread(is_closed, connection)


@pytest.mark.parametrize("turns", TURNS)
async def test_start_that_is_cancelled(turns: int) -> None:
    """Nothing goes on listening for a start that did not come to its end."""
    with socket.socket() as free:
        free.bind((HOST, 0))
        port = int(free.getsockname()[1])
    server = HttpServer(answer, LOG)
    starting = asyncio.create_task(server.start(HOST, port))
    for _ in range(turns):
        await asyncio.sleep(0)
    starting.cancel()
    await asyncio.wait({starting})
    if not starting.cancelled():
        await server.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, port))


@pytest.mark.parametrize("turns", TURNS[1:])  # at first it has not even begun
async def test_stop_that_is_cancelled(turns: int) -> None:
    """It hangs up all the same."""
    server = HttpServer(answer, LOG)
    with client(await server.start(HOST, 0)) as connection:
        stopping = asyncio.create_task(server.stop())
        for _ in range(turns):
            await asyncio.sleep(0)
        stopping.cancel()
        await asyncio.wait({stopping})
        assert await asyncio.to_thread(is_closed, connection)


@pytest.mark.parametrize("times", [1, 2], ids=["once", "twice"])
async def test_finish_comes_to_its_end(times: int) -> None:
    """Whoever is cancelled while something ends, however often, is told so after it has ended."""
    begun, go, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def end() -> None:
        begun.set()
        await go.wait()
        ended.set()

    waiting = asyncio.create_task(closing.finish(end()))
    await begun.wait()
    for _ in range(times):
        waiting.cancel()
        await asyncio.sleep(0)
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ended.is_set()


async def test_finish_tells_what_went_wrong() -> None:
    """An end that fails is not taken for one that came to its end."""

    async def end() -> None:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        await closing.finish(end())
