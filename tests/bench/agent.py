"""The node agent as a process: how fast it is there, what it weighs, how fast it changes and answers."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.figures import Figure, ratio, scaled
from gpushare.kubelet.server import PluginClient, RegistrationServer
from gpushare.kubelet.values import Device, PreferenceRequest, Registration

HERE = Path(__file__).parent
STARTS = 20
CALLS = 2000
CLIENTS = 8
GPUS = 8
PATIENCE = 20.0


class _Kubelet:
    """Registers one plugin at a time, and notes when which list came."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "var/lib/kubelet/device-plugins"
        self.folder.mkdir(parents=True)
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


@contextlib.contextmanager
def _agent(*, replicas: int) -> Iterator[tuple[_Kubelet, subprocess.Popen[bytes], Path, float]]:
    root = Path(tempfile.mkdtemp(prefix="gb"))
    kubelet = _Kubelet(root)
    config = root / "config.yaml"
    _configure(config, replicas)
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, str(HERE / "agent_process.py"), str(root), str(GPUS), "--config-file", "/config.yaml"]
    )
    try:
        yield kubelet, process, config, begin
    finally:
        process.terminate()
        process.wait(PATIENCE)
        kubelet.close()
        shutil.rmtree(root)


@contextlib.contextmanager
def _bare_server() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="gb") as folder:
        socket = Path(folder, "bare.sock")
        process = subprocess.Popen([sys.executable, str(HERE / "bare_server.py"), str(socket)])
        try:
            client = PluginClient(socket, call_seconds=PATIENCE)
            client.options()  # waits until it listens
            client.close()
            yield socket
        finally:
            process.terminate()
            process.wait(PATIENCE)


def _configure(config: Path, replicas: int) -> None:
    entry = f"{{name: nvidia.com/gpu, replicas: {replicas}}}"
    partial = config.with_suffix(".new")
    partial.write_text(f"version: v1\nsharing: {{timeSlicing: {{resources: [{entry}]}}}}\n")
    partial.replace(config)


def measure() -> list[Figure]:
    """All figures of the agent."""
    return [
        Figure(name="agent start -> first list", unit="ms", values=_starts(), target=400.0),
        *_running(),
    ]


def _starts() -> tuple[float, ...]:
    values = []
    for _ in range(STARTS):
        with _agent(replicas=4) as (kubelet, _, _, begin):
            values.append(1000 * (kubelet.wait_for(GPUS * 4) - begin))
    return tuple(values)


def _running() -> Iterator[Figure]:
    with _agent(replicas=4) as (kubelet, process, _, _), _bare_server() as bare_socket:
        kubelet.wait_for(GPUS * 4)
        client, bare = kubelet.client, PluginClient(bare_socket)
        assert client is not None
        ids = _ids(client)
        mine, theirs = _calls(lambda: _allocate(client, ids[0])), _calls(lambda: _allocate(bare, ids[0]))
        bare.close()
        mine_8, theirs_8 = (_crowd(socket, ids[0]) for socket in (kubelet.folder / "nvidia-gpu.sock", bare_socket))
        preferred = _calls(lambda: _prefer(client, ids))
        time.sleep(2)  # everything that the agent loads late is loaded
        memory = _memory_of(process.pid)
    one, other = (
        Figure(name=f"Allocate, {who}", unit="µs", values=scaled(values, 1e6))
        for who, values in (("agent", mine), ("bare grpcio server", theirs))
    )
    one_8, other_8 = (
        Figure(name=f"Allocate, {CLIENTS} at once, {who}", unit="µs", values=scaled(values, 1e6))
        for who, values in (("agent", mine_8), ("bare grpcio server", theirs_8))
    )
    yield Figure(name="agent RSS, 8 GPUs x 4 shares", unit="MiB", values=(memory,), target=72.0)
    yield from _reloads()
    yield Figure(name="GetPreferredAllocation, 8 GPUs x 4", unit="ms", values=scaled(preferred, 1e3), target=0.6)
    yield from (one, other, one_8, other_8)
    yield ratio("Allocate, agent to bare, p50", one, other, 50, 1.2)
    yield ratio("Allocate, agent to bare, p99", one, other, 99, 1.2)
    yield ratio(f"Allocate, {CLIENTS} at once, agent to bare, p50", one_8, other_8, 50, 1.2)
    yield ratio(f"Allocate, {CLIENTS} at once, agent to bare, p99", one_8, other_8, 99, 1.2)


def _reloads() -> Iterator[Figure]:
    """From the change of the file to the list at the kubelet; the agent looks at the file once in a while, so from there."""
    values = []
    with _agent(replicas=4) as (kubelet, process, config, _):
        kubelet.wait_for(GPUS * 4)
        for turn in range(STARTS):
            replicas = 5 + turn % 2
            _configure(config, replicas)
            begin = time.perf_counter()
            values.append(1000 * (kubelet.wait_for(GPUS * replicas) - begin))
            assert process.poll() is None
    yield Figure(name="--config-file changed -> new list (polled)", unit="ms", values=tuple(values))


def _ids(client: PluginClient) -> list[str]:
    return [device.id for device in next(client.list_and_watch())]


def _allocate(client: PluginClient, share: str) -> None:
    client.allocate([[share]])


def _prefer(client: PluginClient, ids: list[str]) -> None:
    client.preferred([PreferenceRequest(available=tuple(ids), must_include=(), size=2)])


def _calls(call: Callable[[], None], times: int = CALLS) -> tuple[float, ...]:
    for _ in range(100):
        call()
    values = []
    for _ in range(times):
        begin = time.perf_counter()
        call()
        values.append(time.perf_counter() - begin)
    return tuple(values)


def _crowd(socket: Path, share: str) -> tuple[float, ...]:
    def one(_: int) -> tuple[float, ...]:
        client = PluginClient(socket)
        try:
            return _calls(lambda: _allocate(client, share), CALLS // CLIENTS)
        finally:
            client.close()

    with ThreadPoolExecutor(CLIENTS) as pool:
        return tuple(value for values in pool.map(one, range(CLIENTS)) for value in values)


def _memory_of(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", text)
    assert found is not None
    return int(found[1]) / 1024
