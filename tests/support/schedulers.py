"""A scheduler of fractions over a cluster in memory, asked over HTTPS as kube-scheduler and the API server ask it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.fractions import Decision, Dialect, FractionMode
from gpushare.domain.gpunode import revision_of
from gpushare.domain.manifests import Manifest
from gpushare.kube.http import Address, Connection
from gpushare.scheduler.mutating import AdmissionSettings
from gpushare.scheduler.options import Options
from gpushare.scheduler.running import Scheduler
from support.memory_cluster import MemoryCluster
from support.placements import device

NAMESPACE = "gpu-operator"
CONTENT = "version: v1\n"
HAMI = FractionMode(dialect=Dialect.HAMI)
ALIYUN = FractionMode(dialect=Dialect.ALIYUN)
WAIT_SECONDS = 60.0


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def gpu_node(
    name: str, gpus: int = 2, *, mode: FractionMode | None = HAMI, memory: int = 15360, ready: str = "True"
) -> Manifest:
    """A GPUNode as controller and agent leave it. UUIDs are `GPU-<node>-<index>`."""
    status = {
        "appliedRevision": revision_of(CONTENT),
        "devices": [device(index, memory, name) for index in range(gpus)],
        "conditions": [{"type": "AgentReady", "status": ready, "reason": "Test"}],
        **({"fractions": mode.to_json()} if mode else {}),
    }
    return {
        "apiVersion": "gpushare.dev/v1alpha1",
        "kind": "GPUNode",
        "metadata": {"name": name},
        "spec": {"config": {"reason": "label", "revision": revision_of(CONTENT), "content": CONTENT}},
        "status": status,
    }


def pod(name: str, *containers: Mapping[str, Any], namespace: str = "default", **spec: Any) -> Manifest:
    """A pod that is not bound yet."""
    annotations, labels = spec.pop("annotations", {}), spec.pop("labels", {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "annotations": annotations, "labels": labels},
        "spec": {"containers": [dict(each) for each in containers], **spec},
        "status": {"phase": "Pending"},
    }


@dataclass
class Fractions:
    """The cluster, and any number of replicas."""

    cluster: MemoryCluster = field(default_factory=MemoryCluster)
    replicas: dict[str, Replica] = field(default_factory=dict)

    async def add_node(self, name: str, gpus: int = 2, **more: Any) -> None:
        annotations = more.pop("annotations", {})
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "annotations": annotations}}
        await self.cluster.create(node)
        await self.cluster.create(gpu_node(name, gpus, **more))

    async def add_pod(self, name: str, *containers: Mapping[str, Any], **more: Any) -> Manifest:
        return await self.cluster.create(pod(name, *containers, **more))

    def pod(self, name: str, namespace: str = "default") -> Manifest:
        return self.cluster.now(manifests.POD, name, namespace)

    def decision(self, name: str, namespace: str = "default") -> Decision:
        return Decision.from_annotation(self.pod(name, namespace)["metadata"]["annotations"][names.ANNOTATION_DECISION])

    async def confirm(self, name: str, *, on: Mapping[str, Sequence[int]] | None = None) -> None:
        """What the agent says once the kubelet has asked it for the pod's devices; `on`: GPUs by container, as given out."""
        bound = self.pod(name)
        node = bound["spec"]["nodeName"]
        found = self.cluster.now(manifests.GPU_NODE, node)
        indexes = {each["uuid"]: each["index"] for each in found["status"]["devices"]}
        by_gpu = {each["index"]: list(each["containers"]) for each in found["status"].get("allocations", ())}
        for container, grants in self.decision(name).containers.items():
            given = [indexes[grant.uuid] for grant in grants] if on is None else on[container]
            for index, grant in zip(given, grants, strict=True):
                by_gpu.setdefault(index, []).append(
                    {
                        "namespace": "default",
                        "pod": name,
                        "podUID": bound["metadata"]["uid"],
                        "container": container,
                        "resource": "nvidia.com/gpu",
                        "memoryMiB": grant.memory_mib,
                        "cores": grant.cores,
                    }
                )
        await self.tell(node, by_gpu)

    async def tell(self, node: str, holders: Mapping[int, Sequence[Mapping[str, Any]]]) -> None:
        """What the agent says of who holds what, by GPU."""
        allocations = [{"index": index, "containers": list(held)} for index, held in sorted(holders.items())]
        await self.cluster.patch(
            manifests.GPU_NODE, node, {"status": {"allocations": allocations}}, subresource="status"
        )

    async def start(self, name: str) -> None:
        """What the kubelet says once it has admitted the pod."""
        status = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
        await self.cluster.patch(manifests.POD, name, {"status": status}, "default", subresource="status")

    @contextlib.asynccontextmanager
    async def replica(
        self, name: str = "one", *, settings: AdmissionSettings | None = None, elect: bool = True, seconds: float = 60.0
    ) -> AsyncIterator[Replica]:
        """A running replica."""
        options = Options(
            namespace=NAMESPACE,
            port=free_port(),
            address="127.0.0.1",
            leader_elect=elect,
            http_timeout=seconds,
            name=name,
        )
        log = logging.getLogger(f"scheduler.{name}")
        scheduler = Scheduler(options, settings or AdmissionSettings(), self.cluster, NAMESPACE, name, log)
        replica = Replica(scheduler, options.port, asyncio.create_task(scheduler.run(lambda: None)))
        self.replicas[name] = replica
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await replica.until_ready()
            yield replica
        finally:
            await replica.stop()


@dataclass
class Replica:
    """One replica, and a client of it."""

    scheduler: Scheduler
    port: int
    task: asyncio.Task[None]

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.wait({self.task})
        if not self.task.cancelled() and (failure := self.task.exception()) is not None:
            raise failure

    async def until_ready(self) -> None:
        while not self.task.done():
            with contextlib.suppress(OSError):
                status, _ = await self.ask("GET", "/readyz")
                if status == 200:
                    return
            await asyncio.sleep(0.02)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Waits until the scheduler has seen something."""
        async with asyncio.timeout(WAIT_SECONDS):
            while not holds():  # noqa: ASYNC110 - what it waits for is read, and tells nobody
                await asyncio.sleep(0.005)

    @property
    def books(self) -> Any:
        return self.scheduler._books

    async def ask(
        self, method: str, path: str, body: Any = None, headers: Sequence[tuple[str, str]] = ()
    ) -> tuple[int, Any]:
        """Status and body of an answer, parsed where it is JSON."""
        context = ssl.create_default_context(cadata=self.scheduler._certificate.trusted)
        connection = await Connection.open(Address.parse(f"https://127.0.0.1:{self.port}", context))
        try:
            content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
            status = await connection.request(method, path, [("Host", "127.0.0.1"), *headers], content)
            text = await connection.body()
        finally:
            await connection.close()
        with contextlib.suppress(ValueError):
            return status, json.loads(text)
        return status, text.decode()

    async def filter(self, asked: Manifest, *nodes: str) -> tuple[list[str], dict[str, str]]:
        """Nodes that fit, and the reasons of the others."""
        status, answer = await self.ask("POST", "/filter", {"Pod": asked, "NodeNames": list(nodes)})
        assert status == 200
        assert not answer["Error"], answer
        return sorted(answer["NodeNames"]), {**answer["FailedNodes"], **answer["FailedAndUnresolvableNodes"]}

    async def bind(self, asked: Manifest, node: str) -> str:
        """The error, empty where it was bound."""
        metadata = asked["metadata"]
        call = {
            "PodName": metadata["name"],
            "PodNamespace": metadata["namespace"],
            "PodUID": metadata["uid"],
            "Node": node,
        }
        status, answer = await self.ask("POST", "/bind", call)
        assert status == 200
        return str(answer["Error"])

    async def review(
        self, asked: Manifest, *, operation: str = "CREATE", before: Manifest | None = None
    ) -> dict[str, Any]:
        """The response of the webhook."""
        request = {
            "uid": "review",
            "operation": operation,
            "namespace": asked["metadata"].get("namespace", "default"),
            "object": asked,
            "oldObject": before,
        }
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        status, answer = await self.ask("POST", "/webhook", body)
        assert status == 200
        return dict(answer["response"])
