"""One plugin server, spoken to as the kubelet does."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gpushare.domain.pools import Pool
from gpushare.errors import GpuShareError, KubeletError
from gpushare.kubelet import sockets
from gpushare.kubelet.plugin import PluginServer, endpoint_of
from gpushare.kubelet.server import PluginClient
from gpushare.kubelet.values import CallFailed, Device, PluginOptions, PreferenceRequest
from gpushare.sharing.responses import ContainerAnswer

from .conftest import PlainAnswers, pool_of


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        pytest.param("nvidia.com/gpu", "nvidia-gpu.sock", id="gpu"),
        pytest.param("nvidia.com/gpu.shared", "nvidia-gpu.shared.sock", id="renamed"),
        pytest.param("nvidia.com/mig-1g.5gb", "nvidia-mig-1g.5gb.sock", id="mig"),
    ],
)
def test_endpoint(resource: str, expected: str) -> None:
    """Sockets are called as NVIDIA's plugin calls them."""
    assert expected == endpoint_of(resource)


def test_options_list_and_calls(server: PluginServer) -> None:
    """Everything that a kubelet asks is answered."""
    server.serve()
    client = PluginClient(server.socket)
    lists = client.list_and_watch()

    assert client.options() == PluginOptions(preferred_allocation=True, pre_start=False)
    assert next(lists) == (Device(id="GPU-1", numa_nodes=(1,)), Device(id="GPU-2", numa_nodes=(1,)))
    assert [dict(answer.envs) for answer in client.allocate([["GPU-1"], ["GPU-2", "GPU-1"]])] == [
        {"NVIDIA_VISIBLE_DEVICES": "GPU-1"},
        {"NVIDIA_VISIBLE_DEVICES": "GPU-2,GPU-1"},
    ]
    assert client.preferred([PreferenceRequest(available=("a", "b"), size=1)]) == (("a",),)
    client.close()


def test_offer_goes_through_the_open_stream(server: PluginServer) -> None:
    """A changed pool reaches the kubelet without a new registration."""
    server.serve()
    client = PluginClient(server.socket)
    lists = client.list_and_watch()
    next(lists)

    server.offer(pool_of("GPU-1", "GPU-2", sick=["GPU-2"]))

    assert [device.healthy for device in next(lists)] == [True, False]
    client.close()


def test_refusal_is_unknown_with_its_text(server: PluginServer) -> None:
    """The text of a refusal reaches the pod's events; the code is NVIDIA's."""
    server.serve()
    client = PluginClient(server.socket)

    with pytest.raises(CallFailed, match="unknown device: GPU-9") as failure:
        client.allocate([["GPU-1"], ["GPU-9"]])

    assert failure.value.code == "UNKNOWN"
    client.close()


class SlowAnswers(PlainAnswers):
    """Answers an Allocate when it is told to."""

    def __init__(self) -> None:
        self.is_asked, self.may_answer = threading.Event(), threading.Event()

    def allocate(self, pool: Pool, ids: Sequence[str]) -> ContainerAnswer:
        self.is_asked.set()
        assert self.may_answer.wait(5)
        return super().allocate(pool, ids)


def test_stop_lets_an_allocate_finish(directory: Path) -> None:
    """One that is cut off would fail its pod; meanwhile nobody new is let in."""
    answers = SlowAnswers()
    server = PluginServer(directory, pool_of("GPU-1"), answers, logging.getLogger("test"))
    server.serve()
    client = PluginClient(server.socket)
    with ThreadPoolExecutor(2) as pool:
        allocating = pool.submit(client.allocate, [["GPU-1"]])
        assert answers.is_asked.wait(5)
        stopping = pool.submit(server.stop)
        while server.socket.exists():
            pass
        answers.may_answer.set()

        assert allocating.result(5)[0].envs == {"NVIDIA_VISIBLE_DEVICES": "GPU-1"}
        stopping.result(5)
    client.close()


def test_calls_are_counted(server: PluginServer) -> None:
    """What is granted and what is refused, each under its method."""
    server.serve()
    client = PluginClient(server.socket)
    client.allocate([["GPU-1"], ["GPU-2"]])
    with pytest.raises(CallFailed):
        client.allocate([["GPU-9"]])
    client.preferred([PreferenceRequest(available=("a",), size=1)])
    client.close()

    found = {(call.method, call.code): sum(took.counts) for call, took in server.counts.calls().items()}
    assert found == {("Allocate", "OK"): 1, ("Allocate", "UNKNOWN"): 1, ("GetPreferredAllocation", "OK"): 1}


def test_retire_announces_nothing_left(server: PluginServer) -> None:
    """The kubelet sees an empty list before the stream ends, and the stream ends well."""
    server.serve()
    client = PluginClient(server.socket)
    lists = client.list_and_watch()
    next(lists)

    server.retire()

    assert list(lists) == [()]
    assert not server.socket.exists()
    client.close()


def test_stop_leaves_the_socket_of_a_successor(directory: Path, server: PluginServer) -> None:
    """Whoever took the path keeps it, and goes on answering."""
    successor = PluginServer(directory, pool_of("GPU-3"), PlainAnswers(), logging.getLogger("test"))
    server.serve()
    successor.serve()

    server.stop()

    client = PluginClient(successor.socket)
    assert [device.id for device in next(client.list_and_watch())] == ["GPU-3"]
    client.close()
    successor.stop()
    assert list(directory.iterdir()) == []


def test_serve_again(server: PluginServer) -> None:
    """A server whose socket was removed can be served anew, with the pool that it has by then."""
    server.serve()
    server.socket.unlink()
    assert not server.owns_socket
    server.offer(Pool(resource="nvidia.com/gpu", base="nvidia.com/gpu"))

    server.serve()

    client = PluginClient(server.socket)
    assert next(client.list_and_watch()) == ()
    client.close()


def test_many_streams_leave_threads_for_calls(server: PluginServer) -> None:
    """Followers beyond the limit end the oldest ones, so that Allocate is always answered."""
    server.serve()
    clients = [PluginClient(server.socket) for _ in range(12)]
    streams = [client.list_and_watch() for client in clients]
    for stream in streams:
        next(stream)

    assert clients[0].allocate([["GPU-1"]])
    assert list(streams[0]) == []
    for client in clients:
        client.close()


def test_preference_refused(server: PluginServer) -> None:
    """An error of ours in a preference reaches the kubelet with its text."""

    class Stubborn(PlainAnswers):
        def prefer(self, pool: Pool, request: PreferenceRequest) -> tuple[str, ...]:  # noqa: ARG002 - refuses all
            raise GpuShareError("not today")

    stubborn = PluginServer(server.socket.parent, server.pool, Stubborn(), logging.getLogger("test"))
    stubborn.serve()
    client = PluginClient(stubborn.socket)

    with pytest.raises(CallFailed, match="not today"):
        client.preferred([PreferenceRequest(available=("a",), size=1)])
    client.close()
    stubborn.stop()


def test_no_directory(directory: Path) -> None:
    """A machine without a kubelet."""
    server = PluginServer(directory / "none", pool_of(), PlainAnswers(), logging.getLogger("test"))

    with pytest.raises(KubeletError, match=r"no kubelet: .*/none does not exist"):
        server.serve()
    assert not server.owns_socket


def test_path_too_long(directory: Path) -> None:
    """Said in words rather than by the kernel."""
    deep = directory / ("d" * 100)
    deep.mkdir()
    server = PluginServer(deep, pool_of(), PlainAnswers(), logging.getLogger("test"))

    with pytest.raises(KubeletError, match="a socket's path has 107 at most"):
        server.serve()


def test_place_taken_by_a_directory(directory: Path) -> None:
    """What cannot be replaced is an error, and nothing stays behind."""
    (directory / "nvidia-gpu.sock").mkdir()
    server = PluginServer(directory, pool_of(), PlainAnswers(), logging.getLogger("test"))

    with pytest.raises(KubeletError, match=r"cannot listen on .*nvidia-gpu\.sock: Is a directory$"):
        server.serve()
    assert not server.owns_socket
    assert [path.name for path in directory.iterdir()] == ["nvidia-gpu.sock"]


def test_place_for_no_socket(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each try says the same, in the kernel's words rather than gRPC's."""
    monkeypatch.setattr(sockets, "temporary_name", lambda path: path.with_name("none") / "x")
    server = PluginServer(directory, pool_of(), PlainAnswers(), logging.getLogger("test"))

    with pytest.raises(KubeletError, match=r"cannot listen on .*nvidia-gpu\.sock: No such file or directory$"):
        server.serve()
    assert not server.owns_socket
