"""Fractions in a whole cluster: how long until many pods run, and what an agent weighs that gives out parts of GPUs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import yaml

from bench import placing
from bench.agents import GPUS, HERE, PATIENCE, Kubelet, memory_of
from bench.figures import Figure
from gpushare import data, names
from gpushare.domain import gpunode, manifests
from gpushare.domain.fractions import Decision, Dialect, Grant
from gpushare.domain.gpunode import Config, ConfigReason
from gpushare.kube import credentials, watching
from gpushare.kube.cluster import Cluster
from gpushare.kube.lean import LeanCluster
from gpushare.kubelet.server import PodResourcesServer
from gpushare.kubelet.values import ContainerDevices
from gpushare.sandbox.apiserver.server import ApiServer, Settings
from support import commands
from support.mixed_workloads import Workload
from support.placements import hami
from support.schedulers import pod

NODES, NODE_GPUS, SLOTS = 100, 4, 10
SHAPES = 5
PODS = 500
WAIT_SECONDS = 600.0
NODE = "gpu01"
HAMI = "version: v1\ngpushare: {fractions: hami}\n"
SLICED = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 10}]}}\n"
_SECRETS = "var/run/secrets/kubernetes.io/serviceaccount"
_LOG = logging.getLogger("bench")


def measure() -> list[Figure]:
    """The pure part, whole clusters, and agents."""
    alike = [Workload(name="one", kind="Deployment", count=PODS, containers=(hami(gpus=1, mem=3000, cores=30),))]
    mixed = [
        Workload(
            name=f"shape-{number}",
            kind="Deployment",
            count=PODS // SHAPES,
            containers=(hami(gpus=1, mem=1000 + 500 * number, cores=10),),
        )
        for number in range(SHAPES)
    ]
    return [
        *placing.measure(),
        _place("one shape", alike),
        _place(f"{SHAPES} shapes at once", mixed),
        asyncio.run(_weigh("time slicing", SLICED)),
        asyncio.run(_weigh("fractions, 8 pods", HAMI)),
    ]


def _place(name: str, workloads: list[Workload]) -> Figure:
    """From the first Deployment to the last pod that runs."""
    node = {"labels": {names.LABEL_HAMI_NODE: "on"}, "gpus": [{"model": "Tesla-T4", "count": NODE_GPUS}]}
    scenario = {"nodes": [{"name": f"gpu{number:03}", **node} for number in range(NODES)]}
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig, file = Path(folder, "kubeconfig"), Path(folder, "scenario.yaml")
        file.write_text(yaml.safe_dump(scenario))
        with commands.sandbox(kubeconfig, "--scenario", str(file)) as process:
            seconds = asyncio.run(_run(kubeconfig, workloads))
            memory = memory_of(process.pid)
    print(f"{name}: the whole cluster took {memory:.0f} MiB", file=sys.stderr)
    return Figure(name=f"{PODS} pods, {name}, on {NODES} nodes: the last runs", unit="s", values=(seconds,), target=60)


async def _run(kubeconfig: Path, workloads: list[Workload]) -> float:
    cluster = LeanCluster(credentials.from_kubeconfig(kubeconfig))
    try:
        offering: set[str] = set()
        async for node in _follow(cluster, manifests.NODE):
            allocatable = (node.get("status") or {}).get("allocatable") or {}
            if allocatable.get(names.RESOURCE_GPU) == str(NODE_GPUS * SLOTS):
                offering.add(node["metadata"]["name"])
            if len(offering) == NODES:
                break
        begin = time.perf_counter()
        for workload in workloads:
            await cluster.create(workload.build())
        running: set[str] = set()
        async for each in _follow(cluster, manifests.POD, "default"):
            phase = (each.get("status") or {}).get("phase")
            assert phase != "Failed", each["status"]
            if phase == "Running":
                running.add(each["metadata"]["name"])
            if len(running) == PODS:
                break
        return time.perf_counter() - begin
    finally:
        await cluster.close()


async def _follow(cluster: Cluster, kind: manifests.Kind, namespace: str = "") -> AsyncIterator[manifests.Manifest]:
    async with asyncio.timeout(WAIT_SECONDS), aclosing(watching.follow(cluster, kind, namespace, log=_LOG)) as changes:
        async for change in changes:
            for item in change.items if isinstance(change, watching.Synced) else (change.event.object,):
                yield item


async def _weigh(name: str, content: str) -> Figure:
    """An agent in a cluster that has told all that there is to tell."""
    with _machine() as (root, kubelet, holders):
        server = await ApiServer.start(Settings())
        (root / "admin.yaml").write_text(yaml.safe_dump(server.kubeconfig()))
        cluster = LeanCluster(credentials.from_kubeconfig(root / "admin.yaml"))
        try:
            await _install(cluster, content)
            with _agent(root, server) as process:
                await asyncio.to_thread(kubelet.wait_for, GPUS * SLOTS)
                if content == HAMI:
                    for index in range(GPUS):
                        await _let_in(cluster, kubelet, holders, index)
                    await _until(cluster, lambda status: len(status.get("allocations", ())) == GPUS)
                await asyncio.sleep(6)  # what it loads a while after its start
                memory = memory_of(process.pid)
        finally:
            await cluster.close()
            await server.stop()
    return Figure(name=f"agent RSS in a cluster, 8 GPUs x 10, {name}", unit="MiB", values=(memory,), target=72)


@contextlib.contextmanager
def _machine() -> Iterator[tuple[Path, Kubelet, list[ContainerDevices]]]:
    root = Path(tempfile.mkdtemp(prefix="gb"))
    kubelet, holders = Kubelet(root), list[ContainerDevices]()
    (root / "var/lib/kubelet/pod-resources").mkdir(parents=True)
    resources = PodResourcesServer(root / "var/lib/kubelet/pod-resources/kubelet.sock", lambda: tuple(holders))
    resources.start()
    try:
        yield root, kubelet, holders
    finally:
        kubelet.close()
        resources.stop()
        shutil.rmtree(root)


@contextlib.contextmanager
def _agent(root: Path, server: ApiServer) -> Iterator[subprocess.Popen[bytes]]:
    folder = root / _SECRETS
    folder.mkdir(parents=True)
    (folder / "ca.crt").write_text(server.ca_pem)
    (folder / "token").write_text(server.token("agent", ("system:masters",)))
    place = {
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": str(server.port),
        names.ENV_NODE_NAME: NODE,
    }
    command = [sys.executable, str(HERE / "agent_process.py"), str(root), str(GPUS)]
    process = subprocess.Popen(command, env={**os.environ, **place})
    try:
        yield process
    finally:
        process.terminate()
        process.wait(PATIENCE)


async def _install(cluster: Cluster, content: str) -> None:
    definition = (data.path_of("crds") / "gpushare.dev_gpunodes.yaml").read_text()
    await cluster.create(yaml.safe_load(definition))
    node = await cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
    config = Config(reason=ConfigReason.DEFAULT, title="bench", content=content)
    manifest = gpunode.assignment_manifest(NODE, node["metadata"]["uid"], config)
    await cluster.apply(manifest, manager=names.MANAGER_CONTROLLER, force=True)


async def _let_in(cluster: Cluster, kubelet: Kubelet, holders: list[ContainerDevices], index: int) -> None:
    """What scheduler and kubelet do for a pod."""
    status = await _until(cluster, lambda status: bool(status.get("devices")))
    uuid, name = status["devices"][index]["uuid"], f"pod-{index}"
    created = await cluster.create(pod(name, {**hami(gpus=1, mem=3000, cores=30), "image": "cuda"}))
    uid = created["metadata"]["uid"]
    containers = {"main": (Grant(uuid, 3000, 30),)}
    decision = Decision(pod_uid=uid, dialect=Dialect.HAMI, shape="one", containers=containers)
    annotations = {names.ANNOTATION_DECISION: decision.to_annotation()}
    metadata = {"name": name, "namespace": "default", "uid": uid, "annotations": annotations}
    target = {"kind": "Node", "name": NODE}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
    await cluster.create(binding, subresource="binding", name=name)
    assert kubelet.client is not None
    ids = (f"{uuid}::0",)
    await asyncio.to_thread(kubelet.client.allocate, [ids])
    held = ContainerDevices(namespace="default", pod=name, container="main", resource=names.RESOURCE_GPU, ids=ids)
    holders.append(held)


async def _until(cluster: Cluster, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE):
        while True:
            found = await cluster.get(manifests.GPU_NODE, NODE)
            status: dict[str, Any] = (found or {}).get("status") or {}
            if holds(status):
                return status
            await asyncio.sleep(0.05)
