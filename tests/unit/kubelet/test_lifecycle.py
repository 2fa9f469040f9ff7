"""A plugin server beside a kubelet that comes, goes, restarts and forgets."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from gpushare.errors import GpuShareError, KubeletError
from gpushare.kubelet import lifecycle, registering
from gpushare.kubelet.lifecycle import Lifecycle, Standing
from gpushare.kubelet.plugin import PluginServer
from gpushare.kubelet.server import PluginClient, RegistrationServer
from gpushare.kubelet.values import Registration
from support.kubelets import Kubelet

from .conftest import PlainAnswers, pool_of

GPU = "nvidia.com/gpu"
LOG = logging.getLogger("test")


@asynccontextmanager
async def living(
    server: PluginServer, kubelet_socket: Path | None, executor: ThreadPoolExecutor, kubelet: Kubelet | None = None
) -> AsyncIterator[Lifecycle]:
    life = Lifecycle(
        server,
        kubelet_socket,
        executor,
        LOG,
        poll_seconds=0.02,
        on_change=kubelet.notify if kubelet else lambda: None,
    )
    task = asyncio.create_task(life.run())
    try:
        yield life
    finally:
        task.cancel()
        await asyncio.wait([task])
        await asyncio.to_thread(server.stop)


async def test_registers(kubelet: Kubelet, server: PluginServer, executor: ThreadPoolExecutor) -> None:
    """The kubelet gets the name, the endpoint and the list."""
    kubelet.start()
    async with living(server, kubelet.socket, executor, kubelet) as life:
        await kubelet.until(lambda: kubelet.ids(GPU) == ["GPU-1", "GPU-2"] and life.standing.registered)

    assert kubelet.registrations == [server.registration]


async def test_kubelet_comes_later(kubelet: Kubelet, server: PluginServer, executor: ThreadPoolExecutor) -> None:
    """Without a kubelet it says so and waits; a kubelet that starts finds it."""
    async with living(server, kubelet.socket, executor, kubelet) as life:
        await kubelet.until(lambda: "does not exist" in life.standing.message)
        kubelet.start()
        await kubelet.until(lambda: kubelet.total(GPU) == 2)


async def test_kubelet_restarts(kubelet: Kubelet, server: PluginServer, executor: ThreadPoolExecutor) -> None:
    """A kubelet that removed every socket and forgot everything is told again."""
    kubelet.start()
    async with living(server, kubelet.socket, executor):
        for times in (1, 2, 3):
            await kubelet.until(lambda: len(kubelet.registrations) == times and kubelet.total(GPU) == 2)  # noqa: B023
            kubelet.lists.clear()
            await asyncio.to_thread(kubelet.restart)
        await kubelet.until(lambda: kubelet.total(GPU) == 2)


async def test_each_registration_is_logged(
    kubelet: Kubelet, server: PluginServer, executor: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    """Also that with a kubelet which has restarted, though nothing was wrong in between."""
    caplog.set_level(logging.INFO)

    async def until_logged(times: int) -> None:
        async with asyncio.timeout(60):
            while caplog.messages.count("registered with the kubelet") < times:  # noqa: ASYNC110 - a log has no event
                await asyncio.sleep(0.02)

    kubelet.start()
    async with living(server, kubelet.socket, executor):
        await until_logged(1)
        await asyncio.to_thread(kubelet.restart)
        await until_logged(2)


async def test_own_socket_deleted(kubelet: Kubelet, server: PluginServer, executor: ThreadPoolExecutor) -> None:
    """Somebody's cleaning of the directory does not make the node lose its GPUs; the old stream ends first."""
    kubelet.start()
    async with living(server, kubelet.socket, executor):
        await kubelet.until(lambda: kubelet.total(GPU) == 2)
        server.socket.unlink()
        await kubelet.until(lambda: len(kubelet.registrations) == 2 and len(kubelet.lists[GPU]) == 2)

        assert kubelet.ended == [GPU]
        assert server.owns_socket


async def test_kubelet_refuses(
    kubelet: Kubelet, server: PluginServer, executor: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kubelet that hangs is told, and tried again."""
    monkeypatch.setattr(lifecycle, "FIRST_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(registering, "CALL_SECONDS", 0.1)
    path = kubelet.socket
    with listening(path):  # no gRPC there
        async with living(server, path, executor, kubelet) as life:
            await kubelet.until(lambda: "the kubelet does not answer within 0.1 s" in life.standing.message)
            kubelet.start()
            await kubelet.until(lambda: life.standing == Standing(registered=True))


async def test_kubelet_loses_the_stream(
    kubelet: Kubelet, server: PluginServer, executor: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A registered plugin that nobody follows registers again."""
    monkeypatch.setattr(lifecycle, "STREAM_SECONDS", 0.05)
    monkeypatch.setattr(lifecycle, "FIRST_RETRY_SECONDS", 0.05)
    kubelet.start()
    async with living(server, kubelet.socket, executor):
        await kubelet.until(lambda: kubelet.total(GPU) == 2)
        kubelet.clients[GPU].close()
        await kubelet.until(lambda: len(kubelet.registrations) >= 2 and len(kubelet.lists[GPU]) >= 2)


async def test_kubelet_says_no(directory: Path, server: PluginServer, executor: ThreadPoolExecutor) -> None:
    """What it says is told."""
    said = asyncio.Event()
    loop = asyncio.get_running_loop()

    def refuse(registration: Registration) -> None:
        raise GpuShareError(f"{registration.resource} is not wanted")

    refusing = RegistrationServer(directory / "kubelet.sock", refuse)
    refusing.start()
    life = Lifecycle(server, refusing.socket, executor, LOG, poll_seconds=0.02, on_change=said.set)
    task = asyncio.create_task(life.run())
    async with asyncio.timeout(60):
        await said.wait()

    assert life.standing == Standing(registered=False, message="UNKNOWN: nvidia.com/gpu is not wanted")
    task.cancel()
    await asyncio.wait([task])
    await loop.run_in_executor(None, refusing.stop)


async def test_kubelet_is_replaced_while_the_stream_stays(
    kubelet: Kubelet, server: PluginServer, executor: ThreadPoolExecutor
) -> None:
    """The old stream ends before the new registration, or the new kubelet might take that end for its own."""
    kubelet.start()
    async with living(server, kubelet.socket, executor):
        await kubelet.until(lambda: kubelet.total(GPU) == 2)
        told: list[Registration] = []
        follower = PluginClient(server.socket)
        stream = follower.list_and_watch()
        next(stream)
        successor = RegistrationServer(kubelet.directory / "next.sock", told.append)
        successor.start()
        (kubelet.directory / "next.sock").rename(kubelet.socket)
        await kubelet.until(lambda: kubelet.ended == [GPU])
        async with asyncio.timeout(60):
            while not told:  # noqa: ASYNC110 - told in a thread of gRPC
                await asyncio.sleep(0.01)

        assert list(stream) == []
        follower.close()
        await asyncio.to_thread(successor.stop)


async def test_no_kubelet_socket_given(directory: Path, server: PluginServer, executor: ThreadPoolExecutor) -> None:
    """It serves and never registers."""
    kubelet = Kubelet(directory)
    async with living(server, None, executor, kubelet) as life:
        await kubelet.until(lambda: "no kubelet socket is given" in life.standing.message)

        assert server.owns_socket
        assert not life.standing.registered


async def test_two_agents(
    directory: Path, kubelet: Kubelet, server: PluginServer, executor: ThreadPoolExecutor
) -> None:
    """The later one takes over, the earlier one stands by, and takes it back when the later one has gone."""
    kubelet.start()
    later = PluginServer(directory, pool_of("GPU-9"), PlainAnswers(), LOG)
    async with living(server, kubelet.socket, executor, kubelet) as first:
        await kubelet.until(lambda: kubelet.total(GPU) == 2)
        async with living(later, kubelet.socket, executor, kubelet):
            await kubelet.until(lambda: kubelet.ids(GPU) == ["GPU-9"])
            await kubelet.until(lambda: first.standing.is_displaced)
            assert "another device plugin serves" in first.standing.message
            assert len(kubelet.registrations) == 2
        await kubelet.until(lambda: kubelet.ids(GPU) == ["GPU-1", "GPU-2"])


class SlowServer(PluginServer):
    """Begins to listen only when it is let."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, pool_of("GPU-1"), PlainAnswers(), LOG)
        self.begun, self.may_go_on = asyncio.Event(), threading.Event()
        self.loop = asyncio.get_running_loop()

    def serve(self) -> None:
        self.loop.call_soon_threadsafe(self.begun.set)
        self.may_go_on.wait(60)
        super().serve()


async def test_ended_while_it_begins_to_serve(directory: Path, executor: ThreadPoolExecutor) -> None:
    """Whoever stops the server after its life has ended finds it as it stays."""
    slow = SlowServer(directory)
    task = asyncio.create_task(Lifecycle(slow, None, executor, LOG).run())
    await slow.begun.wait()
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=0.05)
    slow.may_go_on.set()
    await asyncio.wait([task])
    await asyncio.to_thread(slow.stop)

    assert not done
    assert not slow.socket.exists()


class RefusedServer(PluginServer):
    """Never gets its place."""

    attempts = 0

    def serve(self) -> None:
        self.attempts += 1
        raise KubeletError("no place")


async def test_place_that_it_never_gets(
    directory: Path, kubelet: Kubelet, executor: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each attempt lets go of the connection to whoever has it."""
    monkeypatch.setattr(lifecycle, "FIRST_RETRY_SECONDS", 0.01)
    refused = RefusedServer(directory, pool_of("GPU-1"), PlainAnswers(), LOG)
    with listening(refused.socket):
        async with living(refused, None, executor, kubelet) as life:
            while refused.attempts < 3:  # noqa: ASYNC110 - made in a thread
                await asyncio.sleep(0.01)
            assert life.standing.message == "no place"


@contextmanager
def listening(path: Path) -> Iterator[None]:
    """A socket on which nobody answers."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        yield
