"""An agent as a process of its own, a kubelet that notes when which list comes, and what the process costs."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpushare.kubelet.server import PluginClient, RegistrationServer
from gpushare.kubelet.values import Device, Registration

HERE = Path(__file__).parent
GPUS = 8
PATIENCE = 20.0


class Kubelet:
    """Registers one plugin at a time, and notes when which list came."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "var/lib/kubelet/device-plugins"
        self.folder.mkdir(parents=True, exist_ok=True)
        self._server = RegistrationServer(self.folder / "kubelet.sock", self._register)
        self._server.start()
        self._changed = threading.Condition()
        self._lists: list[tuple[float, tuple[Device, ...]]] = []
        self.client: PluginClient | None = None

    def _register(self, registration: Registration) -> None:
        if not registration.resource.endswith("/gpu"):
            return
        self.client = PluginClient(self.folder / registration.endpoint)
        threading.Thread(target=self._follow, args=(self.client,), daemon=True).start()

    def _follow(self, client: PluginClient) -> None:
        with contextlib.suppress(Exception):  # the plugin ends, and with it the stream
            for devices in client.list_and_watch():
                with self._changed:
                    self._lists.append((time.perf_counter(), devices))
                    self._changed.notify_all()

    def wait_for(self, count: int) -> float:
        """When a list of that many devices came, after the last call."""

        def come() -> bool:
            return any(len(devices) == count for _, devices in self._lists)

        with self._changed:
            assert self._changed.wait_for(come, PATIENCE), f"no list of {count} devices"
            when = next(when for when, devices in self._lists if len(devices) == count)
            self._lists.clear()
            return when

    def close(self) -> None:
        if self.client is not None:
            self.client.close()
        self._server.stop()


@dataclass(frozen=True)
class Agent:
    """One at work."""

    kubelet: Kubelet
    process: subprocess.Popen[bytes]
    root: Path
    began: float
    """When it was started, in the time of `time.perf_counter`."""

    @property
    def client(self) -> PluginClient:
        assert self.kubelet.client is not None
        return self.kubelet.client

    @property
    def socket(self) -> Path:
        return self.kubelet.folder / "nvidia-gpu.sock"

    def load_everything(self) -> None:
        """Has it load what a node in a cluster makes it load, and what it loads a while after its start."""
        self.process.send_signal(signal.SIGUSR1)
        time.sleep(6)

    def configure(self, replicas: int) -> float:
        """Another configuration, in one step as in a ConfigMap volume. Returns when that was."""
        configure(self.root, replicas)
        return time.perf_counter()

    @property
    def memory_mib(self) -> float:
        return memory_of(self.process.pid)

    @property
    def threads(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/task").iterdir()))

    @property
    def open_files(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    @property
    def cpu_seconds(self) -> float:
        user, system = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def running(*, replicas: int, root: Path | None = None, poll_seconds: float = 0.0) -> Iterator[Agent]:
    """An agent with this configuration. `root`: of an agent before it; `poll_seconds`: how often it looks at the file."""
    folder = root or Path(tempfile.mkdtemp(prefix="gb"))
    kubelet = Kubelet(folder)
    configure(folder, replicas)
    command = [sys.executable, str(HERE / "agent_process.py"), str(folder), str(GPUS), "--config-file", "/config.yaml"]
    environ = {**os.environ, "BENCH_POLL_SECONDS": str(poll_seconds)} if poll_seconds else None
    began = time.perf_counter()
    process = subprocess.Popen(command, env=environ)
    try:
        yield Agent(kubelet, process, folder, began)
    finally:
        process.terminate()
        process.wait(PATIENCE)
        kubelet.close()
        if root is None:
            shutil.rmtree(folder)


def configure(root: Path, replicas: int) -> None:
    entry = f"{{name: nvidia.com/gpu, replicas: {replicas}}}"
    partial = root / "config.new"
    partial.write_text(f"version: v1\nsharing: {{timeSlicing: {{resources: [{entry}]}}}}\n")
    partial.replace(root / "config.yaml")


def memory_of(pid: int) -> float:
    """Resident memory of a process, in MiB."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) / 1024
