"""The node agent as a process: how fast it is there, what it weighs, how fast it changes and answers."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from bench.agents import GPUS, HERE, PATIENCE, Agent, running
from bench.figures import Figure, ratio, scaled
from gpushare.kubelet.server import PluginClient
from gpushare.kubelet.values import PreferenceRequest

STARTS = 20
CALLS = 4000
ROUNDS = 20
CLIENTS = 8
BARE = "bare grpcio server"
MANY = 100
"""Replicas of each of the GPUs: 800 shares."""
IDLE_SECONDS = 20.0
Values = tuple[float, ...]
"""Seconds that calls took."""


def measure() -> list[Figure]:
    """All figures of the agent."""
    return [*_starts(), *_at_rest(), *_reloads(), *_answers()]


def _starts() -> Iterator[Figure]:
    first = []
    for _ in range(STARTS):
        with running(replicas=4) as agent:
            first.append(1000 * (agent.kubelet.wait_for(GPUS * 4) - agent.began))
    again = []
    root = Path(tempfile.mkdtemp(prefix="gb"))
    try:
        for _ in range(STARTS + 1):
            with running(replicas=4, root=root) as agent:
                again.append(1000 * (agent.kubelet.wait_for(GPUS * 4) - agent.began))
    finally:
        shutil.rmtree(root)
    yield Figure(name="agent start -> first list, reading its first text", unit="ms", values=tuple(first), target=400.0)
    yield Figure(name="agent start -> first list, last good known", unit="ms", values=tuple(again[1:]), target=400.0)


def _at_rest() -> Iterator[Figure]:
    with running(replicas=4) as agent:
        agent.kubelet.wait_for(GPUS * 4)
        agent.load_everything()
        memory = agent.memory_mib
        before = agent.cpu_seconds
        time.sleep(IDLE_SECONDS)
        idle = 100 * (agent.cpu_seconds - before) / IDLE_SECONDS
    yield Figure(name="agent RSS, 8 GPUs x 4 shares, all loaded", unit="MiB", values=(memory,), target=72.0)
    yield Figure(name="agent CPU when idle", unit="% of a core", values=(idle,), target=0.5)


def _reloads() -> Iterator[Figure]:
    """From the change of the file, which the agent looks at all the time here, to the list at the kubelet."""
    values = []
    with running(replicas=4, poll_seconds=0.001) as agent:
        agent.kubelet.wait_for(GPUS * 4)
        for turn in range(STARTS):
            replicas = 5 + turn % 2
            changed = agent.configure(replicas)
            values.append(1000 * (agent.kubelet.wait_for(GPUS * replicas) - changed))
        agent.configure(MANY)
        agent.kubelet.wait_for(GPUS * MANY)
        listed = _calls(lambda: _list(agent), STARTS)
    yield Figure(name="configuration changed -> new list", unit="ms", values=tuple(values), target=50.0)
    yield Figure(name=f"list of {GPUS * MANY} shares", unit="ms", values=scaled(listed, 1e3), target=50.0)


def _answers() -> Iterator[Figure]:
    """Beside a server that does nothing: in turn, each over connections that carry nothing else and stay open."""
    with running(replicas=4) as agent, _bare_server() as bare_socket, contextlib.ExitStack() as stack:
        agent.kubelet.wait_for(GPUS * 4)
        ids = _ids(agent.client)
        both = [
            [stack.enter_context(contextlib.closing(PluginClient(socket))) for _ in range(CLIENTS)]
            for socket in (agent.socket, bare_socket)
        ]
        preferred = _side_by_side(*(partial(_calls, partial(_prefer, clients[0], ids)) for clients in both))
        allocated = _side_by_side(*(partial(_calls, partial(_allocate, clients[0], ids[0])) for clients in both))
        crowded = _side_by_side(*(partial(_crowd, clients, ids[0]) for clients in both))
    one, other = (scaled(values, 1e3) for values in preferred)
    yield from _compared(
        "GetPreferredAllocation",
        Figure(name="GetPreferredAllocation, 8 GPUs x 4", unit="ms", values=one, target=0.6),
        Figure(name=f"GetPreferredAllocation, {BARE}", unit="ms", values=other),
    )
    for call, both in (("Allocate", allocated), (f"Allocate, {CLIENTS} at once", crowded)):
        one, other = (scaled(values, 1e6) for values in both)
        yield from _compared(
            call,
            Figure(name=f"{call}, agent", unit="µs", values=one),
            Figure(name=f"{call}, {BARE}", unit="µs", values=other),
            most=1.2,
        )


def _compared(call: str, agent: Figure, bare: Figure, *, most: float | None = None) -> Iterator[Figure]:
    """Both, and what one is of the other; `most`: what that is to be."""
    yield from (agent, bare)
    for percent in (50, 99):
        yield ratio(f"{call}, agent to bare, p{percent}", agent, bare, percent, most)


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


def _ids(client: PluginClient) -> list[str]:
    return [device.id for device in next(client.list_and_watch())]


def _list(agent: Agent) -> None:
    lists = agent.client.list_and_watch()
    next(lists)
    lists.close()


def _allocate(client: PluginClient, share: str) -> None:
    client.allocate([[share]])


def _prefer(client: PluginClient, ids: list[str]) -> None:
    client.preferred([PreferenceRequest(available=tuple(ids), must_include=(), size=2)])


def _calls(call: Callable[[], None], times: int) -> Values:
    for _ in range(times // 20):
        call()
    values = []
    for _ in range(times):
        begin = time.perf_counter()
        call()
        values.append(time.perf_counter() - begin)
    return tuple(values)


def _side_by_side(one: Callable[[int], Values], other: Callable[[int], Values]) -> tuple[Values, Values]:
    """Both in turn, several times: whatever else the machine does then slows both alike."""
    rounds = [(one(CALLS // ROUNDS), other(CALLS // ROUNDS)) for _ in range(ROUNDS)]
    return tuple(v for mine, _ in rounds for v in mine), tuple(v for _, theirs in rounds for v in theirs)


def _crowd(clients: Sequence[PluginClient], share: str, times: int) -> Values:
    def one(client: PluginClient) -> Values:
        return _calls(partial(_allocate, client, share), times // len(clients))

    with ThreadPoolExecutor(len(clients)) as pool:
        return tuple(value for values in pool.map(one, clients) for value in values)
