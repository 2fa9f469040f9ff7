"""An agent that works for a long time: 100,000 Allocates and 1,000 reloads. What grows with them is a leak."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from bench.agents import GPUS, Agent, running
from bench.figures import Figure

ALLOCATES = 100_000
RELOADS = 1_000
WARM_ALLOCATES = 5_000
WARM_RELOADS = 500
THREADS = 16


def measure() -> list[Figure]:
    """Growth after everything has been used once."""
    with running(replicas=4, poll_seconds=0.001) as agent:
        agent.kubelet.wait_for(GPUS * 4)
        agent.load_everything()
        _crowd(agent)
        _allocate(agent, WARM_ALLOCATES)
        _reload(agent, WARM_RELOADS)
        memory, threads, files = [agent.memory_mib], agent.threads, agent.open_files
        _allocate(agent, ALLOCATES)
        memory.append(agent.memory_mib)
        _reload(agent, RELOADS)
        memory.append(agent.memory_mib)
        more_threads, more_files = agent.threads - threads, agent.open_files - files
    return [
        Figure(
            name=f"RSS, growth over {ALLOCATES:,} Allocates", unit="MiB", values=(memory[1] - memory[0],), target=2.0
        ),
        Figure(name=f"RSS, growth over {RELOADS:,} reloads", unit="MiB", values=(memory[2] - memory[1],), target=2.0),
        Figure(name="threads, growth over both", unit="threads", values=(more_threads,), target=0.0),
        Figure(name="open files, growth over both", unit="files", values=(more_files,), target=0.0),
    ]


def _allocate(agent: Agent, times: int) -> None:
    ids = [device.id for device in next(agent.client.list_and_watch())]
    for turn in range(times):
        # One and two at a time, all of them in turn: what is remembered of answers is not to grow either.
        agent.client.allocate([[ids[turn % len(ids)]], [ids[turn % len(ids)], ids[turn // 7 % len(ids)]]])


def _crowd(agent: Agent) -> None:
    """As many at once as the server has threads, which come as they are needed."""
    with ThreadPoolExecutor(THREADS) as pool:
        for _ in range(THREADS):
            pool.submit(_allocate, agent, WARM_ALLOCATES // THREADS)


def _reload(agent: Agent, times: int) -> None:
    for turn in range(times):
        replicas = 5 + turn % 2
        agent.configure(replicas)
        agent.kubelet.wait_for(GPUS * replicas)
