"""The kubelet's side, where it is not seen through the plugin's."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpushare.errors import KubeletError
from gpushare.kubelet.registering import register
from gpushare.kubelet.server import PluginClient, RegistrationServer
from gpushare.kubelet.values import CallFailed, PluginOptions, Registration


def test_registrations_arrive(directory: Path) -> None:
    """As they were sent; a stale socket is no obstacle."""
    seen: list[Registration] = []
    server = RegistrationServer(directory / "kubelet.sock", seen.append)
    server.socket.touch()
    server.start()
    sent = Registration(
        endpoint="a.sock", resource="nvidia.com/gpu", options=PluginOptions(preferred_allocation=False, pre_start=True)
    )

    register(server.socket, sent)

    assert seen == [sent]
    server.stop()
    server.stop()
    assert not server.socket.exists()


def test_nowhere_to_listen(directory: Path) -> None:
    """An error of ours, not gRPC's."""
    server = RegistrationServer(directory / "none/kubelet.sock", lambda _: None)

    with pytest.raises(KubeletError, match="cannot listen on"):
        server.start()
    server.stop()


def test_connection_that_was_closed(directory: Path) -> None:
    """As one thread does where a plugin has gone, while another is about to call it: its calls are cancelled, its list ends."""
    client = PluginClient(directory / "a.sock")
    client.close()

    for call in (client.options, lambda: client.allocate([["a"]]), lambda: client.preferred([])):
        with pytest.raises(CallFailed, match="CANCELLED"):
            call()
    assert list(client.list_and_watch()) == []


def test_plugin_that_is_not_there(directory: Path) -> None:
    """Each call says so."""
    client, hasty = PluginClient(directory / "a.sock"), PluginClient(directory / "a.sock", call_seconds=0.05)

    with pytest.raises(CallFailed, match="UNAVAILABLE"):
        client.allocate([["a"]])
    with pytest.raises(CallFailed, match="UNAVAILABLE"):
        list(client.list_and_watch())
    with pytest.raises(CallFailed, match=r"DEADLINE_EXCEEDED|UNAVAILABLE"):
        hasty.options()
    hasty.close()
    client.close()
