"""What stands in for kubelets where a test needs pods that run, but no devices and no programs: everything starts and ends.

The same behaviour as the stand-in with which the recorded answers of a real API server were made.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from itertools import count

from aiohttp import web

from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.kube.cluster import Cluster, EventType, PatchType
from gpushare.kube.watching import Synced, follow
from gpushare.serving.certificates import Authority

LEASE_NAMESPACE = "kube-node-lease"
START_SECONDS = 0.3
LEASE_SECONDS = 2.0
CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


class StandinKubelets:
    """All nodes of a cluster: makes bound pods Running, ends deleted ones, renews the leases of the nodes."""

    def __init__(self, cluster: Cluster, log: logging.Logger) -> None:
        self._cluster = cluster
        self._log = log
        self._addresses = count(1)
        self._busy: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Works until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._renew_leases())
            async for change in follow(self._cluster, manifests.POD, log=self._log):
                pods = change.items if isinstance(change, Synced) else (change.event.object,)
                if not isinstance(change, Synced) and change.event.type is EventType.DELETED:
                    continue
                for pod in pods:
                    group.create_task(self._handle(pod))

    async def _handle(self, pod: Manifest) -> None:
        metadata, status = pod["metadata"], pod.get("status") or {}
        if not pod["spec"].get("nodeName"):
            return
        name, namespace = metadata["name"], metadata["namespace"]
        if metadata.get("deletionTimestamp"):
            await self._cluster.delete(manifests.POD, name, namespace, uid=metadata["uid"], grace_seconds=0)
        elif status.get("phase", "Pending") == "Pending":
            await asyncio.sleep(START_SECONDS)
            await self._cluster.patch(
                manifests.POD, name, self._running(pod), namespace, patch_type=PatchType.STRATEGIC, subresource="status"
            )

    def _running(self, pod: Manifest) -> Manifest:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        containers = [
            {
                "name": each["name"], "image": each["image"], "imageID": "", "ready": True, "restartCount": 0,
                "started": True, "state": {"running": {"startedAt": now}},
            }
            for each in pod["spec"]["containers"]
        ]  # fmt: skip
        status = {
            "phase": "Running", "hostIP": "127.0.0.1", "podIP": f"10.244.0.{next(self._addresses) % 250 + 1}",
            "startTime": now, "containerStatuses": containers,
            "conditions": [{"type": name, "status": "True", "lastTransitionTime": now} for name in CONDITIONS],
        }  # fmt: skip
        return {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}

    async def _renew_leases(self) -> None:
        while True:
            for node in (await self._cluster.list(manifests.NODE)).items:
                await self._renew(node)
            await asyncio.sleep(LEASE_SECONDS)

    async def _renew(self, node: Manifest) -> None:
        name, now = node["metadata"]["name"], datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"spec": {"renewTime": now}}
        if await self._cluster.patch(manifests.LEASE, name, spec, LEASE_NAMESPACE) is None:
            owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
            await self._cluster.create({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": name, "namespace": LEASE_NAMESPACE, "ownerReferences": [owner]},
                "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now},
            })  # fmt: skip


@contextlib.asynccontextmanager
async def serving_logs(authority: Authority, listening: socket.socket | None = None) -> AsyncIterator[int]:
    """A kubelet's HTTPS endpoint that answers every log request with one line; yields its port."""
    listening = listening or socket.create_server(("127.0.0.1", 0))
    context = authority.server_context("kubelet", ["localhost", "127.0.0.1"])
    app = web.Application()
    app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", _answer_log)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.SockSite(runner, listening, ssl_context=context).start()
        yield listening.getsockname()[1]
    finally:
        await runner.cleanup()


async def _answer_log(request: web.Request) -> web.Response:
    return web.Response(text=f"log of {request.match_info['pod']}\n")
