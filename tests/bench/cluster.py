"""The sandbox from outside: how long until it is ready, until a change has reached fifty nodes, until all is walked through."""

from __future__ import annotations

import asyncio
import logging
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path

from bench.figures import Figure, repeat
from gpushare.domain import manifests
from gpushare.kube import credentials, watching
from gpushare.kube.cluster import Cluster
from gpushare.kube.lean import LeanCluster
from support import commands

NODES = 50
GPUS = 4
TIMES = 20
NAMESPACE = "gpu-operator"
POLICY = "cluster-policy"
_LOG = logging.getLogger("bench")


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
    async with aclosing(watching.follow(cluster, manifests.NODE, log=_LOG)) as changes:
        await anext(changes)  # how things were
        begin = time.perf_counter()
        await change()
        lacking = {f"gpu{number:02}" for number in range(1, NODES + 1)}
        while lacking:
            seen = await anext(changes)
            nodes = seen.items if isinstance(seen, watching.Synced) else (seen.event.object,)
            lacking -= {node["metadata"]["name"] for node in nodes if _shares_of(node) == str(GPUS * shares)}
        return time.perf_counter() - begin


def _shares_of(node: manifests.Manifest) -> str:
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    return str(allocatable.get("nvidia.com/gpu", ""))


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
