"""Who holds what, over the socket."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpushare.kubelet.podresources import read_holders
from gpushare.kubelet.server import PodResourcesServer
from gpushare.kubelet.values import CallFailed, ContainerDevices

HOLDER = ContainerDevices(namespace="n", pod="p", container="c", resource="nvidia.com/gpu", ids=("GPU-1::0",))


def test_read_holders(directory: Path) -> None:
    """Each call tells how it is now."""
    holders = [HOLDER]
    server = PodResourcesServer(directory / "kubelet.sock", lambda: holders)
    server.start()

    assert read_holders(server.socket) == (HOLDER,)
    holders.clear()
    assert read_holders(server.socket) == ()
    server.stop()


def test_no_kubelet(directory: Path) -> None:
    """A kubelet that is not there is an error of the kubelet."""
    with pytest.raises(CallFailed, match="UNAVAILABLE"):
        read_holders(directory / "kubelet.sock")
