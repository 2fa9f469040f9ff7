"""Health from a program to what people read: program, probe, pod, GPUNode, policy, Events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.gpunode import AGENT_READY
from gpushare.domain.manifests import Manifest
from gpushare.sandbox.app import Options, Sandbox
from gpushare.sandbox.installing import NAMESPACE

WAIT_SECONDS = 120.0
CONTROLLER_PORT = 8080


async def until(holds: Callable[[], Awaitable[Any]]) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            if await holds():
                return
            await asyncio.sleep(0.02)


async def pods(sandbox: Sandbox, app: str) -> list[Manifest]:
    return list((await sandbox.cluster.list(manifests.POD, NAMESPACE, labels=f"app={app}")).items)


async def ask(pod: Manifest, port: int, path: str) -> str:
    reader, writer = await asyncio.open_connection(pod["status"]["podIP"], port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    received = await reader.read()
    writer.close()
    await writer.wait_closed()
    return received.decode()


def is_ready(pod: Manifest) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", ()))


@pytest.mark.timeout(400)
@pytest.mark.parametrize("host_network", [False, True], ids=["pod network", "host network"])
async def test_all_on_one_port(host_network: bool) -> None:
    """Agents of all nodes run in one process, serve the same port, and are ready because they answer there."""
    async with Sandbox(Options(nodes=8)) as sandbox:
        await sandbox.ready()
        if host_network:
            spec = {"devicePlugin": {"hostNetwork": True}, "daemonsets": {"rollingUpdate": {"maxUnavailable": "100%"}}}
            await sandbox.cluster.patch(manifests.CLUSTER_POLICY, "cluster-policy", {"spec": spec})

        async def all_are_ready() -> bool:
            agents = await pods(sandbox, names.DAEMONSET_DEVICE_PLUGIN)
            return (
                len(agents) == 8
                and all(map(is_ready, agents))
                and all(bool(agent["spec"].get("hostNetwork")) is host_network for agent in agents)
            )

        await until(all_are_ready)
        for agent in await pods(sandbox, names.DAEMONSET_DEVICE_PLUGIN):
            metrics = await ask(agent, names.PORT_AGENT, "/metrics")
            assert 'gpushare_registered{resource="nvidia.com/gpu"} 1.0' in metrics
        [controller] = await pods(sandbox, names.CONTROLLER)
        assert is_ready(controller)
        assert "gpushare_controller_leading 1.0" in await ask(controller, CONTROLLER_PORT, "/metrics")
        assert "200 OK" in await ask(controller, CONTROLLER_PORT, "/healthz")


@pytest.mark.timeout(400)
async def test_driver_goes() -> None:
    """Without a driver an agent is not ready, and everybody reads why: on the policy, the GPUNode and the Node."""
    async with Sandbox(Options(nodes=1)) as sandbox:
        await sandbox.ready()
        cluster = sandbox.cluster

        async def said(*texts: str) -> bool:
            policy = await cluster.get(manifests.CLUSTER_POLICY, "cluster-policy")
            return all(text in str(policy["status"]) for text in texts) if policy else False

        async def agent_is_away() -> bool:
            gpu_node = await cluster.get(manifests.GPU_NODE, "gpu01")
            conditions = gpu_node["status"]["conditions"] if gpu_node else ()
            return any(c["type"] == AGENT_READY and c["status"] == "False" for c in conditions)

        async def told() -> bool:
            events = (await cluster.list(manifests.EVENT, "default")).items
            return any((e["reason"], e["involvedObject"]["name"]) == ("GPUUnhealthy", "gpu01") for e in events)

        sandbox.hardware["gpu01"].fail("the driver is being replaced")
        await until(told)
        await until(agent_is_away)
        await until(lambda: said("waiting for gpu01 (", "the driver is being replaced", "kubectl describe pods -n"))
