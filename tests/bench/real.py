"""A real node beside the embedded one: how long people wait for what they do. Only by name, and only for root.

Both have one node of 4 x T4; what is measured is what a watch of the API server tells.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.figures import Figure
from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.manifests import Kind, Manifest
from gpushare.kube import credentials, watching
from gpushare.kube.cluster import Cluster
from gpushare.kube.lean import LeanCluster
from gpushare.sandbox.app import Options, Sandbox
from support.real_cluster import starting
from support.real_cluster.gpu_node import GPUS, NAMESPACE, NODE, SAMPLE, GpuNode
from support.snapshots import time_slicing

TIMES = 10
MANY = 100
"""Pods that come at once, each for a share."""
_LOG = logging.getLogger("bench")
_CONFIG = "bench"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One of the two."""

    name: str
    cluster: Cluster
    restart_kubelet: Callable[[], Awaitable[object]]


def measure() -> list[Figure]:
    """Both, one after the other."""
    figures = asyncio.run(_measure_embedded())
    for seconds in (1, 10):
        with starting.gpu_node(nodeStatusUpdateFrequency=f"{seconds}s") as node:
            node.install()
            figures += asyncio.run(_measure_real(node, f"real, status every {seconds} s"))
    return sorted(figures, key=lambda figure: figure.name)


async def _measure_embedded() -> list[Figure]:
    async with Sandbox(Options(nodes=1)) as sandbox:
        assert await sandbox.ready()
        assert sandbox.fleet is not None
        kubelet = sandbox.fleet.nodes[NODE]
        return await _measure(Site(name="embedded", cluster=sandbox.cluster, restart_kubelet=kubelet.restart))


async def _measure_real(node: GpuNode, name: str) -> list[Figure]:
    cluster = LeanCluster(credentials.from_kubeconfig(node.cluster.kubeconfig()))
    try:
        restart = partial(asyncio.to_thread, node.cluster.restart_kubelet)
        return await _measure(Site(name=name, cluster=cluster, restart_kubelet=restart))
    finally:
        await cluster.close()


async def _measure(site: Site) -> list[Figure]:
    await site.cluster.create(_config_map())
    await _share(site, 4)
    patches = [await _share(site, 5 - turn % 2) for turn in range(TIMES)]
    agents = [await _restart_agent(site) for _ in range(TIMES // 2)]
    kubelets = [await _restart_kubelet(site) for _ in range(TIMES // 2)]
    pods = [await _run_pods(site, 1) for _ in range(TIMES)]
    await _share(site, MANY // GPUS)
    many = [await _run_pods(site, MANY)]
    measured = {
        "patch of the policy -> allocatable": patches,
        "agent deleted -> another ready": agents,
        "kubelet restarted -> a pod runs with a share": kubelets,
        "pod created -> Running with a share": pods,
        f"{MANY} pods created -> {MANY} Running with {MANY} shares": many,
    }
    return [Figure(name=f"{what}, {site.name}", unit="s", values=tuple(values)) for what, values in measured.items()]


async def _share(site: Site, replicas: int) -> float:
    body = {"spec": {"devicePlugin": {"config": {"name": _CONFIG, "default": f"by-{replicas}"}}}}
    wanted = str(GPUS * replicas)
    async with _seeing(site, manifests.NODE) as seen:
        begin = time.perf_counter()
        await site.cluster.patch(manifests.CLUSTER_POLICY, "cluster-policy", body)
        await seen.until(lambda nodes: _allocatable(nodes[NODE]) == wanted)
        return time.perf_counter() - begin


async def _restart_agent(site: Site) -> float:
    async with _seeing(site, manifests.POD, NAMESPACE, labels=f"app={names.DAEMONSET_DEVICE_PLUGIN}") as seen:
        old = next(iter(seen.objects))
        begin = time.perf_counter()
        await site.cluster.delete(manifests.POD, old, NAMESPACE)
        await seen.until(lambda pods: any(name != old and _is_ready(pod) for name, pod in pods.items()))
        return time.perf_counter() - begin


async def _restart_kubelet(site: Site) -> float:
    # A pod that needs the plugin can run only once the agent has registered with the new kubelet.
    begin = time.perf_counter()
    await site.restart_kubelet()
    while True:
        with contextlib.suppress(AssertionError):
            await _run_pods(site, 1)
            return time.perf_counter() - begin


async def _run_pods(site: Site, number: int) -> float:
    wanted = [f"bench-{number}" for number in range(number)]
    async with _seeing(site, manifests.POD, "default") as seen:
        begin = time.perf_counter()
        await asyncio.gather(*(site.cluster.create(_pod(name)) for name in wanted))
        try:
            await seen.until(lambda pods: all(_runs(pods.get(name)) for name in wanted))
            return time.perf_counter() - begin
        finally:
            for name in wanted:
                await site.cluster.delete(manifests.POD, name, "default", grace_seconds=1)
            await seen.until(lambda pods: not pods)


class _Seen:
    """The objects of a kind, as they change."""

    def __init__(self, changes: AsyncIterator[Any]) -> None:
        self._changes = changes
        self.objects: dict[str, Manifest] = {}

    async def next(self) -> None:
        change = await anext(self._changes)
        if isinstance(change, watching.Synced):
            self.objects = {obj["metadata"]["name"]: obj for obj in change.items}
        elif change.event.type == "DELETED":
            self.objects.pop(change.event.object["metadata"]["name"], None)
        else:
            self.objects[change.event.object["metadata"]["name"]] = change.event.object

    async def until(self, holds: Callable[[dict[str, Manifest]], bool]) -> None:
        while not holds(self.objects):
            await self.next()


@contextlib.asynccontextmanager
async def _seeing(site: Site, kind: Kind, namespace: str = "", **selector: Any) -> AsyncIterator[_Seen]:
    async with aclosing(watching.follow(site.cluster, kind, namespace, log=_LOG, **selector)) as changes:
        seen = _Seen(changes)
        await seen.next()  # how things were
        yield seen


def _allocatable(node: Manifest) -> str:
    return str((node["status"].get("allocatable") or {}).get(names.RESOURCE_GPU, ""))


def _is_ready(pod: Manifest) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _runs(pod: Manifest | None) -> bool:
    phase = ((pod or {}).get("status") or {}).get("phase")
    assert phase != "Failed", pod
    return phase == "Running"


def _pod(name: str) -> Manifest:
    container = {
        "name": "main", "image": SAMPLE, "command": ["/bin/sleep", "infinity"],
        "resources": {"limits": {names.RESOURCE_GPU: "1"}},
    }  # fmt: skip
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]},
    }  # fmt: skip


def _config_map() -> Manifest:
    metadata = {"name": _CONFIG, "namespace": NAMESPACE}
    texts = {f"by-{replicas}": time_slicing(replicas) for replicas in (4, 5, MANY // GPUS)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": texts}
