"""A whole small cluster for tests of the workload controllers: API server, simulated nodes, controllers, scheduler, kubectl."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gpushare.domain import manifests
from gpushare.domain.manifests import Kind, Manifest
from gpushare.kube.credentials import Credentials
from gpushare.kube.lean import LeanCluster
from gpushare.sandbox import scheduling, workloads
from gpushare.sandbox.tour import engine
from support import simulated_nodes
from support.simulated_nodes import WAIT_SECONDS, Nodes

LOG = logging.getLogger(__name__)


@dataclass
class WorkloadCluster:
    """What a test sees of it."""

    nodes: Nodes
    kubeconfig: Path
    stop: asyncio.Event

    async def kubectl(self, *arguments: str, stdin: str = "", code: int = 0) -> str:
        """Runs kubectl and returns what it prints; the exit code must be `code`."""
        process = await asyncio.create_subprocess_exec(
            engine.find_kubectl(),
            *("--kubeconfig", str(self.kubeconfig), "--cache-dir", str(self.kubeconfig.parent / "cache")),
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(WAIT_SECONDS):
            output, _ = await process.communicate(stdin.encode())
        assert process.returncode == code, output.decode()
        return output.decode()

    async def apply(self, *objects: Manifest) -> None:
        """Applies objects through kubectl."""
        await self.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))

    async def pods(self, app: str) -> list[Manifest]:
        """The pods of an app that are not going, oldest first."""
        listed = await self.nodes.cluster.list(manifests.POD, "default", labels=f"app={app}")
        found = [pod for pod in listed.items if "deletionTimestamp" not in pod["metadata"]]
        return sorted(found, key=lambda pod: int(pod["metadata"]["resourceVersion"]))

    async def get(self, kind: Kind, name: str, namespace: str = "default") -> Manifest:
        """An object that must be there."""
        found = await self.nodes.cluster.get(kind, name, namespace if kind.namespaced else "")
        assert found is not None
        return found

    async def events(self, kind: str, reason: str) -> list[str]:
        """Messages of the events about objects of a kind."""
        listed = await self.nodes.cluster.list(manifests.EVENT)
        return [
            event["message"]
            for event in listed.items
            if event["involvedObject"]["kind"] == kind and event["reason"] == reason
        ]


@asynccontextmanager
async def running(folder: Path, *names: str) -> AsyncIterator[WorkloadCluster]:
    """A cluster with nodes of these names, everything at work."""
    async with simulated_nodes.running(*names) as nodes:
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(json.dumps(nodes.server.kubeconfig()))
        clusters = [
            LeanCluster(
                Credentials(
                    server=nodes.server.url, ca=nodes.server.ca_pem, token=nodes.server.token(f"system:{program}")
                ),
                user_agent=program,
            )
            for program in ("kube-controller-manager", "kube-scheduler")
        ]
        stop = asyncio.Event()
        tasks = [
            asyncio.create_task(workloads.run(clusters[0], LOG, stop)),
            asyncio.create_task(scheduling.run(clusters[1], LOG, stop)),
        ]
        try:
            yield WorkloadCluster(nodes, kubeconfig, stop)
        finally:
            stop.set()
            await asyncio.gather(*tasks)
            for cluster in clusters:
                await cluster.close()


def workload(kind: str, name: str, *, image: str = "nginx:1.29", gpus: int = 0, **spec: Any) -> Manifest:
    """A DaemonSet or Deployment whose pods have the label `app` with its name."""
    container = simulated_nodes.container(image=image, gpus=gpus)
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **spec.pop("pod_spec", {})}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template, **spec},
    }
