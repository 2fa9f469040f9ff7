"""The scheduler of fractions with 5,000 nodes of 8 GPUs and 20,000 pods on them: start, filter, bind, memory.

The API server and the client run in this process, the scheduler as a process of its own, asked over HTTPS as kube-scheduler
asks it: with a whole pod and the names of all nodes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import ssl
import sys
import tempfile
import time
from base64 import b64decode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import yaml

from bench.crowd import Crowd
from bench.figures import Figure, scaled
from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.fractions import Decision, Dialect, FractionMode, Grant
from gpushare.domain.gpunode import revision_of
from gpushare.kube.http import Address, Connection
from support.clusters import NAMESPACE
from support.placements import device, hami, request_of
from support.schedulers import free_port, pod

NODES = 5_000
GPUS = 8
PODS_A_NODE = 4
FILTERS = 200
BINDS = 500
_CONTENT = "version: v1\ngpushare: {fractions: hami}\n"
_MODE = FractionMode(dialect=Dialect.HAMI)
_APPLY = "application/apply-patch+yaml"
_CONTAINER = hami(gpus=1, mem=3000, cores=30)
_POD_BYTES = 5_000
START_SECONDS = 120.0


def measure() -> list[Figure]:
    """All of it."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_measure(Path(folder)))


async def _measure(folder: Path) -> list[Figure]:
    async with Crowd.running(folder, NODES) as crowd:
        await _fill(crowd)
        async with _running(crowd, folder) as scheduler:
            return [
                Figure(name="extender: start to first answer", unit="s", values=(scheduler.seconds,), target=15),
                Figure(name="extender: CPU for that", unit="s", values=(scheduler.cpu_seconds,)),
                *await _filter(scheduler),
                *await _bind(crowd, scheduler),
                Figure(name="extender: RSS afterwards", unit="MiB", values=(scheduler.memory_mib,), target=600),
            ]


async def _filter(scheduler: _Running) -> list[Figure]:
    durations = []
    before = scheduler.cpu_seconds
    for turn in range(FILTERS):
        asked = {
            **_pod(f"asked-{turn}"),
            "metadata": {"name": f"asked-{turn}", "namespace": "bench", "uid": f"u{turn}"},
        }
        begin = time.perf_counter()
        answer = await scheduler.ask_about_all("filter", asked)
        durations.append(time.perf_counter() - begin)
        assert len(json.loads(answer)["NodeNames"]) == NODES, answer
    used = (scheduler.cpu_seconds - before) / FILTERS * 1000
    values = scaled(durations, 1000)
    what = f"extender: filter, {NODES:,} nodes, {NODES * PODS_A_NODE:,} pods"
    figure = Figure(name=what, unit="ms", values=values, target=10)
    return [
        figure,
        Figure(name="extender: filter, p99", unit="ms", values=(figure.at(99),), target=25),
        Figure(name="extender: CPU a filter", unit="ms", values=(used,)),
    ]


async def _bind(crowd: Crowd, scheduler: _Running) -> list[Figure]:
    """Filter and bind, each pod after the one before, which the API server knows already; then what prioritize would add."""
    created = [await crowd.send("POST", _PODS, _pod(f"bound-{turn}"), manager="person") for turn in range(BINDS)]
    begin, before = time.perf_counter(), scheduler.cpu_seconds
    for turn, asked in enumerate(created):
        assert b'"NodeNames":["' in await scheduler.ask_about_all("filter", asked)
        metadata, node = asked["metadata"], scheduler.nodes[turn * 7 % NODES]
        call = {"PodName": metadata["name"], "PodNamespace": "bench", "PodUID": metadata["uid"], "Node": node}
        assert json.loads(await scheduler.ask("bind", json.dumps(call).encode())) == {"Error": ""}
    seconds, used = time.perf_counter() - begin, scheduler.cpu_seconds - before
    durations = []
    for asked in created[:FILTERS]:
        begin = time.perf_counter()
        await scheduler.ask_about_all("prioritize", asked)
        durations.append(time.perf_counter() - begin)
    return [
        # 50 pods a second; figures are better when they are smaller.
        Figure(name="extender: filter and bind a pod", unit="ms", values=(seconds / BINDS * 1000,), target=20),
        Figure(name="extender: CPU for that", unit="ms", values=(used / BINDS * 1000,)),
        Figure(name=f"extender: prioritize, {NODES:,} nodes", unit="ms", values=scaled(durations, 1000)),
    ]


_PODS = "/api/v1/namespaces/bench/pods"


def _pod(name: str, **more: Any) -> dict[str, Any]:
    """A pod of real size."""
    body = pod(name, _CONTAINER, namespace="bench", **more)
    body["spec"]["containers"][0]["image"] = "registry.example/team/training:1"
    body["metadata"]["annotations"]["example.com/filler"] = "x" * (_POD_BYTES - len(json.dumps(body)))
    return body


async def _fill(crowd: Crowd) -> None:
    """GPUNodes, and pods that hold a part of half of each node's GPUs."""
    await crowd.send("POST", "/api/v1/namespaces", {"metadata": {"name": "bench"}}, manager="person")
    shape = request_of(_CONTAINER).shape
    for number in range(NODES):
        node = f"node-{number:05}"
        uids = [await _place(crowd, node, index, shape) for index in range(PODS_A_NODE)]
        kind = {"apiVersion": "gpushare.dev/v1alpha1", "kind": "GPUNode", "metadata": {"name": node}}
        config = {"name": "fractions", "reason": "label", "revision": revision_of(_CONTENT), "content": _CONTENT}
        path = "/apis/gpushare.dev/v1alpha1/gpunodes"
        await crowd.send("POST", path, {**kind, "spec": {"config": config}}, manager="gpushare-controller")
        body = {**kind, "status": _status(node, uids)}
        await crowd.send("PATCH", f"{path}/{node}/status", body, kind=_APPLY, manager="gpushare-agent")


async def _place(crowd: Crowd, node: str, index: int, shape: str) -> str:
    created = await crowd.send("POST", _PODS, _pod(f"{node}-{index}"), manager="person")
    uid = str(created["metadata"]["uid"])
    decision = Decision(
        pod_uid=uid,
        dialect=Dialect.HAMI,
        shape=shape,
        containers={"main": (Grant(f"GPU-{node}-{index}", 3000, 30),)},
    )
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {
            "name": f"{node}-{index}",
            "namespace": "bench",
            "annotations": {names.ANNOTATION_DECISION: decision.to_annotation()},
        },
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    await crowd.send("POST", f"{_PODS}/{node}-{index}/binding", binding, manager="gpushare-scheduler")
    return uid


def _status(node: str, uids: list[str]) -> dict[str, Any]:
    held = [
        {
            "index": index,
            "containers": [
                {
                    "namespace": "bench",
                    "pod": f"{node}-{index}",
                    "podUID": uid,
                    "container": "main",
                    "resource": names.RESOURCE_GPU,
                    "shares": [0],
                    "memoryMiB": 3000,
                    "cores": 30,
                }
            ],
        }
        for index, uid in enumerate(uids)
    ]
    ready = {"type": "AgentReady", "status": "True", "reason": "Ready", "message": ""}
    return {
        "appliedRevision": revision_of(_CONTENT),
        "fractions": _MODE.to_json(),
        "devices": [device(index, 40960, node) for index in range(GPUS)],
        "allocations": held,
        "conditions": [{**ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    }


class _Running:
    """The process under measurement, and a connection to it."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self._process = process
        self._port = port
        self._connection: Connection | None = None
        self.nodes = [f"node-{number:05}" for number in range(NODES)]
        self._names = b',"NodeNames":' + json.dumps(self.nodes).encode() + b"}"
        self.seconds = 0.0
        """From its start to its first answer."""

    async def ask_about_all(self, verb: str, asked: Any) -> bytes:
        """A call with a pod and the names of all nodes, which are put into words once: the client is not what is measured."""
        return await self.ask(verb, b'{"Pod":' + json.dumps(asked).encode() + self._names)

    async def ask(self, verb: str, content: bytes) -> bytes:
        assert self._connection is not None
        headers = [("Host", "localhost"), ("Content-Type", "application/json")]
        code = await self._connection.request("POST", f"/{verb}", headers, content)
        answer = await self._connection.body()
        self._connection.finish()
        assert code == 200, answer
        return answer

    async def connect(self, crowd: Crowd) -> None:
        """Waits for the first answer with nodes in it."""
        begin = time.perf_counter()
        asked = {**_pod("first"), "metadata": {"name": "first", "namespace": "bench", "uid": "first"}}
        async with asyncio.timeout(START_SECONDS):
            while True:
                with contextlib.suppress(OSError):
                    found = await crowd.cluster.admin.get(manifests.SECRET, names.SECRET_SCHEDULER, NAMESPACE)
                    if found is not None:
                        context = ssl.create_default_context(cadata=b64decode(found["data"]["ca.crt"]).decode())
                        self._connection = await Connection.open(
                            Address.parse(f"https://127.0.0.1:{self._port}", context)
                        )
                        if b'"NodeNames":["' in await self.ask_about_all("filter", asked):
                            break
                assert self._process.returncode is None
                await asyncio.sleep(0.05)
        self.seconds = time.perf_counter() - begin

    @property
    def cpu_seconds(self) -> float:
        """Used so far, in user and system mode."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def memory_mib(self) -> float:
        """Resident memory now."""
        lines = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()


@contextlib.asynccontextmanager
async def _running(crowd: Crowd, folder: Path) -> AsyncIterator[_Running]:
    kubeconfig, port = folder / "admin.yaml", free_port()
    kubeconfig.write_text(yaml.safe_dump(crowd.cluster.server.kubeconfig()))
    with (folder / "scheduler.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gpushare", "scheduler", "--kubeconfig", str(kubeconfig), "--port", str(port)),
            *("--namespace", NAMESPACE, "--address", "127.0.0.1"),
            stderr=log,
        )
        running = _Running(process, port)
        try:
            await running.connect(crowd)
            yield running
        finally:
            await running.close()
            process.terminate()
            await process.wait()
