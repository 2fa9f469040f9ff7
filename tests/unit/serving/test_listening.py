"""Listening for the whole life of a process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Iterator

import pytest

from gpushare.serving.http import Request, Response
from gpushare.serving.listening import listen

LOG = logging.getLogger("test.listening")


async def answer(request: Request) -> Response:
    return Response(body=request.path.encode())


@contextlib.asynccontextmanager
async def listening(address: str, port: int) -> AsyncIterator[None]:
    task = asyncio.create_task(listen(answer, address, port, LOG, pause=0.01))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def ask(address: str, port: int) -> bytes:
    """Asks until somebody answers."""
    while True:
        try:
            reader, writer = await asyncio.open_connection(address, port)
        except ConnectionRefusedError:
            await asyncio.sleep(0.01)
            continue
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        received = await reader.read()
        writer.close()
        await writer.wait_closed()
        return received


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.mark.parametrize("address", ["", "127.0.0.1"], ids=["all addresses", "one address"])
async def test_answers(address: str) -> None:
    """Whoever knows the port is answered."""
    port = free_port()
    async with listening(address, port):
        assert b"/healthz" in await ask("127.0.0.1", port)


async def test_many_on_one_port() -> None:
    """Processes of ours that run in one, as in the sandbox, share the port, each on its own address."""
    port = free_port()
    addresses = [f"127.243.0.{number}" for number in range(1, 51)]
    async with contextlib.AsyncExitStack() as stack:
        for address in addresses:
            await stack.enter_async_context(listening(address, port))
        for address in addresses:
            assert b"/healthz" in await ask(address, port)


class Told(logging.Handler):
    """What was logged, to be awaited."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []
        self.something = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())
        self.something.set()


@pytest.fixture
def told() -> Iterator[Told]:
    handler = Told()
    LOG.addHandler(handler)
    yield handler
    LOG.removeHandler(handler)


async def test_taken_port(told: Told) -> None:
    """A port that somebody else has is waited for, told once."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = int(taken.getsockname()[1])
        async with listening("127.0.0.1", port):
            await told.something.wait()
            await asyncio.sleep(0.05)  # some tries later
            taken.close()
            assert b"/healthz" in await ask("127.0.0.1", port)

    assert told.messages == ["cannot listen"]
