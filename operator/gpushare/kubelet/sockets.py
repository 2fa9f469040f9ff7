"""Whose socket lies at a path: ours, another process's, a dead one, none. Used by the plugin server and its life cycle."""

from __future__ import annotations

import contextlib
import secrets
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

CONNECT_SECONDS = 0.5
RECEIVE_BYTES = 4096
MAX_PATH_BYTES = 107
"""The kernel's limit for paths of unix sockets."""

# RFC 9113: what a client says first, and the one frame that matters to us.
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_SETTINGS = bytes.fromhex("000000 04 00 00000000")
_SETTINGS_ACK = bytes.fromhex("000000 04 01 00000000")
_GO_AWAY = 7
_FRAME_HEADER_BYTES = 9


@dataclass(frozen=True, slots=True)
class SocketId:
    """Tells one socket file from the next at the same path.

    The inode alone does not: a kubelet that restarts removes its socket and makes another, which often gets the number
    that has just become free. The time of the change differs.
    """

    device: int
    inode: int
    changed_ns: int

    def is_same_file(self, other: SocketId | None) -> bool:
        """Whether both are one file, however its mode or owner changed meanwhile.

        Enough for a socket that one listens on oneself: it keeps its inode from being given out again.
        """
        return other is not None and (self.device, self.inode) == (other.device, other.inode)


def identify(path: Path) -> SocketId | None:
    """What lies at a path; None when nothing does."""
    try:
        status = path.stat()
    except OSError:
        return None
    return SocketId(status.st_dev, status.st_ino, status.st_ctime_ns)


def is_alive(path: Path) -> bool:
    """Whether somebody listens on the socket at a path."""
    peer = Peer.connect(path)
    if peer is None:
        return False
    peer.close()
    return True


class Peer:
    """A connection held to the gRPC server on a socket, only to learn when it stops, even after its path is ours.

    Speaks as much HTTP/2 as a server needs to keep the connection, and to understand that it says goodbye.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._greeted = False

    @classmethod
    def connect(cls, path: Path) -> Self | None:
        """A connection to whoever listens at a path; None when nobody does."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(CONNECT_SECONDS)
        try:
            connection.connect(str(path))
            connection.sendall(_PREFACE + _SETTINGS)
        except OSError:
            connection.close()
            return None
        connection.setblocking(False)
        return cls(connection)

    def has_ended(self) -> bool:
        """Whether the server has stopped or is about to. Does not wait."""
        try:
            while received := self._connection.recv(RECEIVE_BYTES):
                if _GO_AWAY in _frame_types(received):
                    return True
                if not self._greeted:
                    self._greeted = True
                    self._connection.sendall(_SETTINGS_ACK)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def close(self) -> None:
        """Lets go."""
        self._connection.close()


def _frame_types(received: bytes) -> Iterator[int]:
    """Types of the HTTP/2 frames in what one `recv` gave; what a server says unasked is short and comes in one piece."""
    position = 0
    while position + _FRAME_HEADER_BYTES <= len(received):
        yield received[position + 3]
        position += _FRAME_HEADER_BYTES + int.from_bytes(received[position : position + 3], "big")


def temporary_name(path: Path) -> Path:
    """A name beside `path`, never longer than those of plugins' sockets."""
    return path.with_name(f".{secrets.token_hex(4)}")


def check_bindable(path: Path) -> None:
    """Whether a socket can be made beside `path`. Raises OSError where not, such as on a disk that has become read-only."""
    temporary = temporary_name(path)
    with socket.socket(socket.AF_UNIX) as probe:
        probe.bind(str(temporary))
    temporary.unlink()


def unlink_own(path: Path, own: SocketId | None) -> None:
    """Removes the socket at a path if it is still one's own; an agent that follows this one may have put its own there."""
    if own is not None and own.is_same_file(identify(path)):
        # Where it cannot be removed (a disk that the kernel has made read-only) it is dead, and replaced by whoever comes next.
        with contextlib.suppress(OSError):
            path.unlink()
