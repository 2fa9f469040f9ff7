"""One plugin server, spoken to as the kubelet does."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from gpushare.domain.pools import Pool
from gpushare.kubelet.plugin import PluginServer, endpoint_of
from gpushare.kubelet.server import PluginClient
from gpushare.kubelet.values import CallFailed, Device, PluginOptions, PreferenceRequest

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
