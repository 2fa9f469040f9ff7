"""Simulated nodes on an embedded API server, and device plugins that register with them: what integration tests start."""

# ruff: noqa: ARG002 - the parameters are those of the protocol
from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpushare.domain import manifests
from gpushare.domain.manifests import Kind, Manifest
from gpushare.domain.pools import Pool, Share
from gpushare.domain.shares import ShareId
from gpushare.kube import watching
from gpushare.kube.cluster import EventType
from gpushare.kube.credentials import Credentials
from gpushare.kube.lean import LeanCluster
from gpushare.kube.watching import Synced
from gpushare.kubelet import registering
from gpushare.kubelet.plugin import PluginServer
from gpushare.kubelet.values import PreferenceRequest
from gpushare.sandbox.apiserver.server import ApiServer, Settings
from gpushare.sandbox.node import plugins
from gpushare.sandbox.node.fleet import NodeFleet
from gpushare.sandbox.node.nodes import Site
from gpushare.sandbox.node.specs import Endpoint, NodeSpec, Pace, Program
from gpushare.sharing.responses import ContainerAnswer, RequestRefused

LOG = logging.getLogger(__name__)
WAIT_SECONDS = 60.0
QUICK = Pace(lease=5.0, settle=0.01, run=0.05, retry=0.05, refresh=0.05, back_off=0.05, back_off_most=0.2, probe=0.01)


@dataclass
class Answers:
    """What a plugin of these tests answers, and what it was asked."""

    refusal: str = ""
    prefers: tuple[str, ...] = ()
    preferences: list[PreferenceRequest] = field(default_factory=list)

    def allocate(self, pool: Pool, ids: Sequence[str]) -> ContainerAnswer:
        if self.refusal:
            raise RequestRefused(self.refusal)
        return ContainerAnswer(envs={"GIVEN": ",".join(sorted(ids))})

    def prefer(self, pool: Pool, request: PreferenceRequest) -> Sequence[str]:
        self.preferences.append(request)
        return self.prefers


def pool_of(resource: str, *ids: str, sick: tuple[str, ...] = ()) -> Pool:
    """A pool of devices with these ids."""
    shares = tuple(Share(id=ShareId(id_), gpu_index=0, healthy=id_ not in sick) for id_ in (*ids, *sick))
    return Pool(resource=resource, base=resource, shares=shares)


@dataclass
class Nodes:
    """What a running fleet looks like to a test."""

    server: ApiServer
    cluster: LeanCluster
    fleet: NodeFleet
    root: Path
    plugins: list[PluginServer] = field(default_factory=list)

    def folder(self, node: str) -> Path:
        """The node's `/`."""
        return self.root / str(list(self.fleet.nodes).index(node) + 1)

    async def plug(self, node: str, pool: Pool, answers: Answers | None = None) -> PluginServer:
        """Starts a device plugin on a node."""
        folder = self.folder(node) / plugins.FOLDER
        server = PluginServer(folder, pool, answers or Answers(), LOG)
        self.plugins.append(server)
        await asyncio.to_thread(server.serve)
        await asyncio.to_thread(registering.register, folder / "kubelet.sock", server.registration)
        return server

    async def until(self, kind: Kind, name: str, expected: Callable[[Manifest], Any], namespace: str = "") -> Manifest:
        """Waits until the object is as expected, and returns it; an object that is gone is an empty one."""
        seen: Manifest = {}
        changes = watching.follow(self.cluster, kind, namespace, fields=f"metadata.name={name}", log=LOG)
        try:
            async with asyncio.timeout(WAIT_SECONDS), aclosing(changes):
                async for change in changes:
                    if isinstance(change, Synced):
                        seen = change.items[0] if change.items else {}
                    else:
                        seen = {} if change.event.type is EventType.DELETED else change.event.object
                    if expected(seen):
                        return seen
        except TimeoutError:
            raise AssertionError(f"{kind.kind} {name} never was as expected: {seen}") from None
        raise AssertionError("unreachable")

    async def until_amounts(self, node: str, resource: str, capacity: str, allocatable: str) -> None:
        """Waits until the Node shows so many devices."""

        def shown(manifest: Manifest) -> bool:
            status = manifest.get("status") or {}
            found = [(status.get(part) or {}).get(resource) for part in ("capacity", "allocatable")]
            return found == [capacity, allocatable]

        await self.until(manifests.NODE, node, shown)

    async def run(self, name: str, **spec: Any) -> None:
        """Creates a pod on a node, past the scheduler; `metadata` is added to its name."""
        metadata = spec.pop("metadata", {})
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", **metadata}}
        await self.cluster.create({**pod, "spec": {"nodeName": "gpu01", **spec}})

    async def until_phase(self, name: str, phase: str) -> Manifest:
        return await self.until(
            manifests.POD, name, lambda pod: (pod.get("status") or {}).get("phase") == phase, "default"
        )

    async def until_gone(self, name: str) -> None:
        await self.until(manifests.POD, name, lambda pod: not pod, "default")

    async def until_event(self, reason: str, text: str = "") -> Manifest:
        """Waits for an Event, and returns it."""
        changes = watching.follow(self.cluster, manifests.EVENT, log=LOG)
        async with asyncio.timeout(WAIT_SECONDS), aclosing(changes):
            async for change in changes:
                seen = change.items if isinstance(change, Synced) else (change.event.object,)
                for event in seen:
                    if event["reason"] == reason and text in event["message"]:
                        return event
        raise AssertionError("unreachable")

    def log(self, pod: str, container: str) -> list[str]:
        """What a container has printed so far."""
        worker = next(filter(None, (node.find("default", pod) for node in self.fleet.nodes.values())))
        return [line.text for line in worker.output_of(container, previous=False).lines()]


def container(name: str = "main", image: str = "nginx:1.29", gpus: int = 0, **more: Any) -> dict[str, Any]:
    """A container that asks for so many GPUs."""
    resources = {"resources": {"limits": {"nvidia.com/gpu": str(gpus)}}} if gpus else {}
    return {"name": name, "image": image, **resources, **more}


@asynccontextmanager
async def running(
    *names: str,
    programs: Mapping[str, Program] | None = None,
    pace: Pace = QUICK,
    server: ApiServer | None = None,
) -> AsyncIterator[Nodes]:
    """Nodes of these names on an API server, of their own where none is given."""
    async with AsyncExitStack() as stack:
        if server is None:
            server = await ApiServer.start(Settings(log=LOG))
            stack.push_async_callback(server.stop)
        cluster, kubelets = (
            LeanCluster(Credentials(server=server.url, ca=server.ca_pem, token=token), user_agent=program)
            for program, token in (
                ("test", server.token()),
                ("kubelet", server.token("system:node:sandbox", ("system:nodes",))),
            )
        )
        stack.push_async_callback(cluster.close)
        stack.push_async_callback(kubelets.close)
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gs")))
        api = Endpoint(host="127.0.0.1", port=server.port)
        site = Site(cluster=kubelets, api=api, programs=programs or {}, log=LOG, pace=pace)
        fleet = NodeFleet([NodeSpec(name=name) for name in names], root, site)
        nodes = Nodes(server=server, cluster=cluster, fleet=fleet, root=root)
        stop = asyncio.Event()
        life = asyncio.create_task(fleet.run(stop))
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await fleet.ready()
            yield nodes
        finally:
            for plugin in nodes.plugins:
                await asyncio.to_thread(plugin.stop)
            stop.set()
            await life
