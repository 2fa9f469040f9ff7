"""A cluster of thousands of nodes for the controller: Nodes and GPUNodes of real size, agents that are played, writes counted.

The API server runs in this process, the controller as a process of its own under the rights of its chart.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from gpushare import names
from gpushare.sandbox.apiserver.requests import Request
from support.clusters import IMAGE, NAMESPACE, GpuCluster

NODE_BYTES = 12_000
_ADMIN = ("system:masters",)
_APPLY = "application/apply-patch+yaml"
_COUNTED = ("nodes", "gpunodes", "clusterpolicies", "daemonsets", "pods")
WAIT_SECONDS = 300.0


class Crowd:
    """The cluster, and what the controller wrote to it."""

    def __init__(self, cluster: GpuCluster, folder: Path) -> None:
        self.cluster = cluster
        self._folder = folder
        self._api = cluster.server.api
        self._token = self._api.authenticator.token_of("admin", _ADMIN)
        self._agents: dict[str, int] = {}
        """Nodes whose agent is played, with the generation of the GPUNode that it has reported."""
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    @contextlib.asynccontextmanager
    async def running(cls, folder: Path, nodes: int) -> AsyncIterator[Crowd]:
        """Nodes as a cluster has them before the controller comes."""
        async with GpuCluster.running(folder) as cluster:
            crowd = cls(cluster, folder)
            for number in range(nodes):
                await crowd.send("POST", "/api/v1/nodes", _node(f"node-{number:05}"), manager="kubelet")
            yield crowd

    async def send(self, method: str, path: str, body: Any, *, kind: str = "application/json", manager: str) -> Any:
        """A request of somebody else than the controller, without the way over a socket."""
        headers = {"authorization": f"Bearer {self._token}", "content-type": kind, "user-agent": f"{manager}/1"}
        query = {"fieldManager": manager, "force": "true"} if kind == _APPLY else {}
        answer = await self._api.handle(Request(method, path, query, headers, json.dumps(body).encode()))
        assert answer.code < 300, answer.body[:500]  # type: ignore[union-attr]
        return json.loads(answer.body)  # type: ignore[union-attr]

    async def written(self, plural: str, times: int) -> float:
        """Waits until the controller has written a kind so often, its status apart; returns the seconds that it took."""
        return await self.until(lambda: self._count()[plural] >= times)

    async def quiet(self, seconds: float) -> None:
        """Waits until the controller has written nothing that counts for so long."""
        while True:
            before = self._count().total()
            await asyncio.sleep(seconds)
            if before == self._count().total():
                return

    def take_writes(self) -> Counter[str]:
        """What the controller wrote since this was asked last, by kind; Events, the Lease and questions about rights apart."""
        found = self._count()
        self.cluster.writes.clear()
        return found

    def _count(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for write in self.cluster.writes:
            parts = write.partition(" ")[2].strip("/").split("/")
            plural = next((part for part in parts if part in _COUNTED), "")
            if plural and "/events" not in write:
                found[f"{plural}/status" if parts[-1] == "status" else plural] += 1
        return found

    @contextlib.asynccontextmanager
    async def controller(self, *flags: str) -> AsyncIterator[Controller]:
        """The controller as a process, with more flags than it needs."""
        log = (self._folder / "controller.log").open("ab")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gpushare", "controller", "--kubeconfig", str(self.cluster.write_kubeconfig())),
            *("--metrics-port", "0", "--namespace", NAMESPACE, *flags),
            env={names.ENV_DEVICE_PLUGIN_IMAGE: IMAGE, names.ENV_POD_NAME: "bench"},
            stderr=log,
        )
        try:
            yield Controller(process)
        finally:
            process.terminate()
            await process.wait()
            log.close()

    # What agents do.

    async def start_agents(self, nodes: list[str]) -> None:
        """From now on these nodes have an agent that is ready and applies what it is given."""
        for name in nodes:
            pod = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": f"agent-{name}",
                    "namespace": NAMESPACE,
                    "labels": {"app": names.DAEMONSET_DEVICE_PLUGIN},
                },
                "spec": {"nodeName": name, "containers": [{"name": "agent", "image": IMAGE}]},
            }
            await self.send("POST", f"/api/v1/namespaces/{NAMESPACE}/pods", pod, manager="kubelet")
            await self.set_ready(name, is_ready=True)
            self._agents[name] = 0
        await self.report(nodes)

    async def set_ready(self, node: str, *, is_ready: bool) -> None:
        """Whether the agent's pod on a node is ready."""
        status = {"status": {"conditions": [{"type": "Ready", "status": str(is_ready)}]}}
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/agent-{node}/status"
        await self.send("PATCH", path, status, kind="application/merge-patch+json", manager="kubelet")

    async def report(self, nodes: list[str]) -> None:
        """Reports what the GPUNodes of these nodes say as applied."""
        for name in nodes:
            await self._report(name)

    async def follow(self) -> None:
        """Plays the agents until cancelled."""
        while True:
            items = (await self.cluster.server.api.handle(self._list_of_gpu_nodes())).body  # type: ignore[union-attr]
            for item in json.loads(items)["items"]:
                name, generation = item["metadata"]["name"], item["metadata"]["generation"]
                if self._agents.get(name, generation) != generation:
                    await self._report(name, item)
            await asyncio.sleep(0.5)

    def _list_of_gpu_nodes(self) -> Request:
        headers = {"authorization": f"Bearer {self._token}"}
        return Request("GET", "/apis/gpushare.dev/v1alpha1/gpunodes", {}, headers)

    async def _report(self, name: str, item: Any = None) -> None:
        path = f"/apis/gpushare.dev/v1alpha1/gpunodes/{name}"
        if item is None:
            headers = {"authorization": f"Bearer {self._token}"}
            item = json.loads((await self._api.handle(Request("GET", path, {}, headers))).body)  # type: ignore[union-attr]
        generation = item["metadata"]["generation"]
        status = _status(item["spec"]["config"], generation)
        body = {"apiVersion": "gpushare.dev/v1alpha1", "kind": "GPUNode", "metadata": {"name": name}, "status": status}
        await self.send("PATCH", f"{path}/status", body, kind=_APPLY, manager=names.MANAGER_AGENT)
        self._agents[name] = generation

    async def until(self, holds: Callable[[], Awaitable[bool]] | Callable[[], bool]) -> float:
        """Waits; returns the seconds that it took."""
        begin = time.perf_counter()
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                found = holds()
                if found if isinstance(found, bool) else await found:
                    return time.perf_counter() - begin
                await asyncio.sleep(0.1)


class Controller:
    """The process under measurement."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @property
    def memory_mib(self) -> float:
        """Resident memory now."""
        lines = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def _node(name: str) -> dict[str, Any]:
    """A Node of real size: labels of node feature discovery, images, conditions."""
    features = {f"feature.node.kubernetes.io/cpu-cpuid.FEATURE{number:02}": "true" for number in range(27)}
    labels = {**features, names.LABELS_NFD_GPU[0]: "true", "kubernetes.io/hostname": name}
    images = [
        {"names": [f"registry.example/team/image-{number:02}@sha256:{number:064x}"], "sizeBytes": 10**9}
        for number in range(50)
    ]
    # As its kubelet writes it; the shares never change in number here.
    amounts = {"cpu": "96", "memory": "1056279696Ki", "pods": "110", names.RESOURCE_GPU: "32"}
    body = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"images": images, "capacity": amounts, "allocatable": amounts},
    }
    missing = NODE_BYTES - len(json.dumps(body)) - 2000  # what the server adds, managed fields above all
    body["metadata"]["annotations"] = {"example.com/filler": "x" * max(missing, 0)}
    return body


def _status(config: Mapping[str, Any], generation: int) -> dict[str, Any]:
    """What an agent of a node with 8 GPUs in shares reports: their number, but for the total, is that of the configuration."""
    sharing = yaml.safe_load(config["content"])["sharing"]
    replicas = sharing["timeSlicing"]["resources"][0]["replicas"]
    devices = [
        {
            "index": index,
            "uuid": f"GPU-00000000-0000-0000-0000-{index:012}",
            "product": "NVIDIA A100-SXM4-80GB",
            "memoryMiB": 81920,
            "health": {"healthy": True},
        }
        for index in range(8)
    ]
    applied = {
        "type": "ConfigApplied",
        "status": "True",
        "reason": "Applied",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "observedGeneration": generation,
    }
    resource = {"name": names.RESOURCE_GPU, "strategy": "time-slicing", "replicas": replicas}
    labels = {
        "nvidia.com/gpu.count": "8",
        "nvidia.com/gpu.replicas": str(replicas),
        names.LABEL_PRODUCT: "A100-SXM4-80GB-SHARED",
    }
    return {
        "appliedRevision": config["revision"],
        "devices": devices,
        "resources": [{**resource, "total": 32, "healthy": 32, "allocated": 0}],
        "labels": labels,
        "conditions": [applied],
    }
