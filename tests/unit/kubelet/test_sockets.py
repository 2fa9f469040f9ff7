"""Whose socket is it."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

from gpushare.kubelet import sockets
from gpushare.kubelet.plugin import PluginServer

SETTINGS = bytes.fromhex("000000 04 00 00000000")
SETTINGS_ACK = bytes.fromhex("000000 04 01 00000000")


def test_identity_sees_a_new_file_with_an_old_inode() -> None:
    """The time tells apart what the number does not."""
    first = sockets.SocketId(1, 2, changed_ns=3)

    assert first != sockets.SocketId(1, 2, changed_ns=4)
    assert first.is_same_file(sockets.SocketId(1, 2, changed_ns=4))


def test_unlink_own(directory: Path) -> None:
    """Only one's own file goes."""
    path = directory / "a.sock"
    path.touch()
    own = sockets.identify(path)
    _touched(directory / "b.sock").replace(path)

    sockets.unlink_own(path, own)
    assert path.exists()
    sockets.unlink_own(path, sockets.identify(path))
    assert not path.exists()


def test_unlink_own_that_stays(directory: Path) -> None:
    """What cannot be removed, as on a disk that has become read-only, keeps no server from ending."""
    path = directory / "a.sock"
    path.mkdir()

    sockets.unlink_own(path, sockets.identify(path))

    assert path.exists()


def test_connections(directory: Path) -> None:
    """Alive while somebody listens; ended once the other side has closed."""
    path = directory / "a.sock"
    assert not sockets.is_alive(path)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    peer = sockets.Peer.connect(path)
    accepted, _ = listener.accept()
    assert peer is not None

    assert sockets.is_alive(path)
    accepted.sendall(SETTINGS)
    assert not peer.has_ended()
    assert accepted.recv(100).endswith(SETTINGS_ACK)
    accepted.close()
    assert peer.has_ended()

    peer.close()
    listener.close()
    assert not sockets.is_alive(path)


def test_goodbye(server: PluginServer) -> None:
    """A server that stops says so before it closes, and then need not wait for us."""
    server.serve()
    peer = sockets.Peer.connect(server.socket)
    assert peer is not None
    stopping = threading.Thread(target=server.stop)

    stopping.start()
    while not peer.has_ended():
        stopping.join(0.001)

    peer.close()
    stopping.join()


def _touched(path: Path) -> Path:
    path.touch()
    return path
