"""The sandbox from outside: how long until it is ready, until a change has reached fifty nodes, until all is walked through."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

from bench.figures import Figure, repeat
from gpushare.domain import manifests
from gpushare.kube import credentials
from gpushare.kube.cluster import Cluster
from gpushare.kube.lean import LeanCluster
from support import commands

NODES = 50
GPUS = 4
TIMES = 20
NAMESPACE = "gpu-operator"
POLICY = "cluster-policy"


def measure_sandbox() -> list[Figure]:
    """The command as a person starts it."""
    return [
        Figure(name="sandbox ready", unit="s", values=repeat(TIMES, _start), target=2.0),
        Figure(name="walk-through, start to end", unit="s", values=repeat(3, _walk), target=15.0),
    ]


def _start() -> float:
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        with commands.sandbox(Path(folder, "kubeconfig")):
            return time.perf_counter() - begin


def _walk() -> float:
    begin = time.perf_counter()
    done = commands.run("sandbox", "--tour")
    assert done.returncode == 0, done.stdout[-2000:]
    return time.perf_counter() - begin


def measure_fleet() -> list[Figure]:
    """Fifty nodes: from a patch or an edit to what all of them show."""
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder, "kubeconfig")
        with commands.sandbox(kubeconfig, "--nodes", str(NODES)):
            return asyncio.run(_changes(kubeconfig))


async def _changes(kubeconfig: Path) -> list[Figure]:
    cluster = LeanCluster(credentials.from_kubeconfig(kubeconfig))
    try:
        await cluster.create(_config_map(2))
        patched, edited = [], []
        for turn in range(TIMES):
            key, shares = (("two", 2), ("three", 3))[turn % 2]
            patched.append(await _timed(cluster, lambda key=key: _name_config(cluster, key), shares))
        for turn in range(TIMES):
            replicas = 4 + turn % 2
            edited.append(await _timed(cluster, lambda n=replicas: _edit(cluster, n), replicas))
        return [
            Figure(name=f"patch of the policy -> {NODES} nodes show it", unit="s", values=tuple(patched), target=2.0),
            Figure(name=f"edit of the ConfigMap -> {NODES} nodes show it", unit="s", values=tuple(edited), target=2.0),
        ]
    finally:
        await cluster.close()


async def _timed(cluster: Cluster, change: Callable[[], Awaitable[object]], shares: int) -> float:
    async with _capacities(cluster) as watch:
        begin = time.perf_counter()
        await change()
        lacking = {f"gpu{number:02}" for number in range(1, NODES + 1)}
        async for name, capacity in watch:
            if capacity == str(GPUS * shares):
                lacking.discard(name)
            if not lacking:
                return time.perf_counter() - begin
    raise AssertionError("the watch ended")


@asynccontextmanager
async def _capacities(cluster: Cluster) -> AsyncIterator[AsyncIterator[tuple[str, str]]]:
    listed = await cluster.list(manifests.NODE)
    events = cluster.watch(manifests.NODE, resource_version=listed.resource_version)

    async def pairs() -> AsyncIterator[tuple[str, str]]:
        async for event in events:
            allocatable = (event.object.get("status") or {}).get("allocatable") or {}
            yield event.object["metadata"].get("name", ""), allocatable.get("nvidia.com/gpu", "")

    async with aclosing(pairs()) as stream:
        yield stream


def _config_map(edited: int) -> manifests.Manifest:
    def text(replicas: int) -> str:
        entry = f"{{name: nvidia.com/gpu, replicas: {replicas}}}"
        return f"version: v1\nsharing:\n  timeSlicing:\n    resources: [{entry}]\n"

    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "bench", "namespace": NAMESPACE},
        "data": {"two": text(2), "three": text(3), "edited": text(edited)},
    }


async def _name_config(cluster: Cluster, key: str) -> None:
    body = {"spec": {"devicePlugin": {"config": {"name": "bench", "default": key}}}}
    await cluster.patch(manifests.CLUSTER_POLICY, POLICY, body)


async def _edit(cluster: Cluster, replicas: int) -> None:
    body = {"data": {key: _config_map(replicas)["data"]["edited"] for key in ("two", "three")}}
    await cluster.patch(manifests.CONFIG_MAP, "bench", body, NAMESPACE)
