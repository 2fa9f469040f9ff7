"""Network, mounts and processes of a cluster apart from those of the machine: what runs in them ends with them."""

from __future__ import annotations

import ctypes
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

NODE_IP: Final = "10.10.0.1"
"""Of the one node. Nothing leads from it out of the namespaces."""
PATIENCE: Final = 20.0
_NETWORK: Final = 0x40000000
"""CLONE_NEWNET."""
_HOLDER: Final = Path(__file__).with_name("holder.sh")


@dataclass(frozen=True, slots=True)
class Namespaces:
    """Namespaces that last as long as their first process does."""

    holder: subprocess.Popen[str]
    pid: int
    """The first process, as the machine counts it."""

    @classmethod
    def create(cls, state: Path, pause: Path, log: Path) -> Namespaces:
        """New ones, with `/var/lib` and `/var/log` below `state`. `pause`: a program that waits and takes away what ended."""
        # A test run that is killed takes the cluster with it.
        own: list[str | Path] = [
            "setpriv",
            "--pdeathsig",
            "KILL",
            "unshare",
            "--net",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
        ]
        command = [*own, "--mount-proc", "--propagation", "slave", _HOLDER, state, NODE_IP, pause]
        with log.open("a") as file:
            holder = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                start_new_session=True,
            )
        assert holder.stdout is not None
        with holder.stdout:
            said = holder.stdout.readline()
        if said != "ready\n":
            holder.kill()
            holder.wait(PATIENCE)
            raise AssertionError(f"no namespaces: {log.read_text()[-500:].strip()}")
        return cls(holder, child_of(holder))

    def enter(self, *command: str | Path) -> list[str]:
        """The command line that runs a program in there."""
        return [*self._enter("--mount", "--net", "--pid"), *map(str, command)]

    def enter_network(self, *command: str | Path) -> list[str]:
        """The same for a program that needs only the network, and the files of the machine."""
        return [*self._enter("--net"), *map(str, command)]

    def _enter(self, *which: str) -> list[str]:
        return ["nsenter", "--target", str(self.pid), *which, "--"]

    def listen(self, port: int) -> socket.socket:
        """A socket that listens in there, for a server of this process."""
        with ThreadPoolExecutor(1) as own_thread:
            return own_thread.submit(self._listen, port).result()

    def _listen(self, port: int) -> socket.socket:
        # A thread has a network of its own, and a socket stays in the one in which it was made.
        with Path(f"/proc/{self.pid}/ns/net").open() as network:
            if ctypes.CDLL(None, use_errno=True).setns(network.fileno(), _NETWORK):
                raise OSError(ctypes.get_errno(), "setns")
        return socket.create_server(("127.0.0.1", port))

    def end(self) -> None:
        """Ends whatever runs in there."""
        self.holder.kill()
        self.holder.wait(PATIENCE)
        end = time.monotonic() + PATIENCE
        while Path(f"/proc/{self.pid}").exists():
            assert time.monotonic() < end, "processes of the cluster do not end"
            time.sleep(0.02)


def child_of(process: subprocess.Popen[str]) -> int:
    """The one child of a program that starts another and waits for it."""
    end = time.monotonic() + PATIENCE
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while process.poll() is None:
        if found := children.read_text().split():
            return int(found[0])
        assert time.monotonic() < end, f"{process.args!r} starts nothing"
        time.sleep(0.01)
    raise AssertionError(f"ended at once: {process.args!r}")
