"""Addresses of pods."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address

import pytest

from gpushare.sandbox.node.services import Addresses


@pytest.mark.parametrize("host_network", [False, True], ids=["pod network", "host network"])
def test_programs_listen_side_by_side(host_network: bool) -> None:
    """Programs of all nodes have one port each, the same, in one process."""
    addresses = Addresses()
    sockets = []
    try:
        port = 0
        for _ in range(50):
            address = addresses.next(is_program=True, host_network=host_network)
            assert IPv4Address(address).is_loopback
            sockets.append(socket.create_server((address, port)))
            port = sockets[0].getsockname()[1]
    finally:
        for listener in sockets:
            listener.close()


def test_others_only_look_like_pods() -> None:
    """What does not really run has an address of a pod network, or its node's."""
    addresses = Addresses()

    assert [addresses.next(is_program=False, host_network=False) for _ in range(2)] == ["10.244.0.1", "10.244.0.2"]
    assert addresses.next(is_program=False, host_network=True) == "127.0.0.1"


def test_two_sandboxes_rarely_meet() -> None:
    """Two sources of one machine give different addresses, though neither knows of the other."""
    one, other = Addresses(), Addresses()

    given = [{source.next(is_program=True, host_network=False) for _ in range(100)} for source in (one, other)]

    # By chance, once in 60,000 runs, they may touch; they are never the same from the start.
    assert len(given[0] | given[1]) > 100
