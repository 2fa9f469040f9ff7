"""The agent and its GPUNode, over the embedded API server, with the rights that its role gives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpushare import names
from gpushare.agent import devices, holding, running
from gpushare.domain import gpunode, manifests
from gpushare.kubelet.values import ContainerDevices
from gpushare.nvml.port import Event
from support.agent_clusters import NODE, WAIT_SECONDS, AgentCluster
from support.agents import GPU, SHARED, Machine, machine, time_slicing
from support.wires import Wire


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "WAIT_SECONDS", 0.05)
    monkeypatch.setattr(holding, "PAUSE_SECONDS", 0.05)


@pytest.fixture
def node() -> Iterator[Machine]:
    with machine() as made:
        made.kubelet.start()
        yield made


@pytest.fixture
async def cluster(node: Machine, tmp_path: Path) -> AsyncIterator[AgentCluster]:
    async with AgentCluster.running(node, tmp_path) as cluster:
        yield cluster


def condition(status: dict[str, Any], type_: str) -> dict[str, Any]:
    return next((one for one in status.get("conditions", ()) if one["type"] == type_), {})


def is_applied(content: str) -> Callable[[dict[str, Any]], bool]:
    return lambda status: (
        status.get("appliedRevision") == gpunode.revision_of(content)
        and condition(status, "ConfigApplied").get("status") == "True"
        and condition(status, "Registered").get("status") == "True"
    )


async def test_assigned_configuration_is_served_and_reported(cluster: AgentCluster, node: Machine) -> None:
    """Everything that the controller and a person want to know stands in the status."""
    await cluster.assign(time_slicing(4))
    async with cluster.agent():
        status = await cluster.until(is_applied(time_slicing(4)))

        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 16)
        assert [len(devices) for devices in node.kubelet.lists[GPU]] == [16]
    assert status["summary"] == {"gpus": 4, "shares": 16, "healthy": 16}
    assert status["problems"] == []
    assert status["resources"] == [
        {"name": GPU, "strategy": "time-slicing", "replicas": 4, "total": 16, "healthy": 16, "allocated": 0}
    ]
    assert [device["uuid"] for device in status["devices"]] == node.uuids()
    assert status["labels"][names.LABEL_PRODUCT] == "Tesla-T4-SHARED"
    assert condition(status, "DevicesReady")["status"] == "True"
    assert condition(status, "ConfigApplied")["observedGeneration"] == 1


async def test_refused_and_corrected(cluster: AgentCluster, node: Machine) -> None:
    """A bad text changes nothing but the report; its correction takes effect."""
    await cluster.assign(time_slicing(4))
    async with cluster.agent():
        await cluster.until(is_applied(time_slicing(4)))
        await cluster.assign("sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replica: 8}]}}")
        status = await cluster.until(lambda status: condition(status, "ConfigApplied")["status"] == "False")

        assert status["appliedRevision"] == gpunode.revision_of(time_slicing(4))
        assert "replicas" in status["problems"][0]["message"]
        assert condition(status, "ConfigApplied")["reason"] == "ConfigRefused"
        assert condition(status, "ConfigApplied")["observedGeneration"] == 2
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 16)
        await cluster.assign(time_slicing(8))
        await cluster.until(is_applied(time_slicing(8)))
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 32)


async def test_missing_resource_is_a_warning(cluster: AgentCluster) -> None:
    """A text for several kinds of node is applied for what of it the node has."""
    text = "sharing: {timeSlicing: {resources: [{name: nvidia.com/mig-7g.40gb, replicas: 7}]}}"
    await cluster.assign(text)
    async with cluster.agent():
        status = await cluster.until(is_applied(text))

    assert "no nvidia.com/mig-7g.40gb" in status["problems"][0]["message"]


async def test_policy_strategy(cluster: AgentCluster, node: Machine) -> None:
    """The MIG strategy of the policy beats that of the text."""
    await cluster.assign("flags: {migStrategy: none}", mig_strategy="mixed")
    async with cluster.agent():
        status = await cluster.until(is_applied("flags: {migStrategy: none}"))

    assert status["labels"][names.LABEL_MIG_STRATEGY] == "mixed"


async def test_who_holds_what(cluster: AgentCluster, node: Machine) -> None:
    """After an Allocate the kubelet is asked; an id that is offered no longer still counts on its GPU."""
    await cluster.assign(time_slicing(4))
    async with cluster.agent():
        await cluster.until(is_applied(time_slicing(4)))
        first, second, *_ = node.uuids()
        ids = (f"{second}::7", f"{first}::2", f"{first}::0")
        node.holders.append(ContainerDevices(namespace="n", pod="p", container="c", resource=GPU, ids=ids))
        await asyncio.to_thread(node.kubelet.clients[GPU].allocate, [[f"{first}::0"]])
        status = await cluster.until(lambda status: bool(status["allocations"]))

    holder = {"namespace": "n", "pod": "p", "container": "c", "resource": GPU}
    assert status["allocations"] == [
        {"index": 0, "containers": [{**holder, "shares": [0, 2]}]},
        {"index": 1, "containers": [{**holder, "shares": [7]}]},
    ]
    assert status["resources"][0]["allocated"] == 3


async def test_sick_gpu(cluster: AgentCluster, node: Machine) -> None:
    """What is wrong, since when, and what is left."""
    await cluster.assign(time_slicing(4))
    async with cluster.agent():
        await cluster.until(is_applied(time_slicing(4)))
        node.nvml.inject(Event(uuid=node.uuids()[1], xid=79))
        status = await cluster.until(lambda status: status["summary"]["healthy"] == 12)

    assert status["devices"][1]["health"]["reason"] == "XID 79"
    assert condition(status, "DevicesReady") == {
        **condition(status, "DevicesReady"),
        "status": "False",
        "reason": "DeviceUnhealthy",
        "message": "GPU 1: XID 79",
    }


async def test_no_gpunode_yet(cluster: AgentCluster, node: Machine) -> None:
    """Unshared until the controller says something; told everything once there is something to tell it to."""
    async with cluster.agent():
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 4)
        await cluster.assign(time_slicing(4, more="renameByDefault: true,"))
        status = await cluster.until(lambda status: status.get("summary", {}).get("shares") == 16)
        assert {resource["name"]: resource["total"] for resource in status["resources"]} == {GPU: 0, SHARED: 16}

        await cluster.admin.delete(manifests.GPU_NODE, NODE)
        await cluster.assign("")
        status = await cluster.until(lambda status: status.get("summary", {}).get("shares") == 4)
        assert status["appliedRevision"] == ""


async def test_start_without_the_api_server(
    cluster: AgentCluster, node: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last good configuration first, then the difference."""
    await cluster.assign(time_slicing(4))
    async with cluster.agent():
        await cluster.until(is_applied(time_slicing(4)))
    await cluster.assign(time_slicing(8))
    node.kubelet.lists.clear()
    await cluster.server.pause()
    async with cluster.agent():
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 16)
        await cluster.server.resume()
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 32)
        await cluster.until(is_applied(time_slicing(8)))


async def test_api_server_goes_away(cluster: AgentCluster, node: Machine) -> None:
    """What is served goes on, whatever happens meanwhile; all of it is told, and followed, once the server is back."""
    await cluster.assign(time_slicing(4))
    async with Wire.to(cluster.server.port) as wire, cluster.agent(port=wire.port):
        await cluster.until(is_applied(time_slicing(4)))
        wire.cut()
        await cluster.assign(time_slicing(2))
        node.nvml.inject(Event(uuid=node.uuids()[1], xid=79))
        await node.kubelet.until(lambda: len(node.kubelet.ids(GPU)) == 12)
        client = node.kubelet.clients[GPU]
        assert await asyncio.to_thread(client.allocate, [[node.kubelet.ids(GPU)[0]]])
        await asyncio.to_thread(node.kubelet.restart)
        await node.kubelet.until(lambda: len(node.kubelet.ids(GPU)) == 12)
        wire.mend()
        await node.kubelet.until(lambda: len(node.kubelet.ids(GPU)) == 6)
        status = await cluster.until(is_applied(time_slicing(2)))

    assert condition(status, "DevicesReady")["message"] == "GPU 1: XID 79"


async def test_quick_api_server_wins_at_once(cluster: AgentCluster, node: Machine) -> None:
    """The first list is that of the newest configuration, not of the last good one."""
    await cluster.assign(time_slicing(4))
    async with cluster.agent():
        await cluster.until(is_applied(time_slicing(4)))
    await cluster.assign(time_slicing(8))
    node.kubelet.lists.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "FIRST_ASSIGNMENT_SECONDS", WAIT_SECONDS)
        async with cluster.agent():
            await cluster.until(is_applied(time_slicing(8)))
            await node.kubelet.until(lambda: node.kubelet.total(GPU) == 32)

    assert [len(devices) for devices in node.kubelet.lists[GPU]] == [32]


async def test_file_beats_the_gpunode(cluster: AgentCluster, node: Machine) -> None:
    """Whoever names a file wants that; the GPUNode still tells what is in force."""
    node.configure(time_slicing(2))
    await cluster.assign(time_slicing(4))
    async with cluster.agent("--config-file", "/config.yaml"):
        await cluster.until(is_applied(time_slicing(2)))


async def test_nothing_changes_nothing_is_written(cluster: AgentCluster, node: Machine) -> None:
    """A pass that finds all as it was, a changed spec that means the same: no write, or one that says so."""
    await cluster.assign(time_slicing(4))
    async with cluster.agent():
        await cluster.until(is_applied(time_slicing(4)))
        await node.kubelet.until(lambda: len(node.kubelet.ids(GPU)) == 16)
        before = await cluster.admin.get(manifests.GPU_NODE, NODE)
        assert before is not None
        node.nvml.inject(Event(uuid=node.uuids()[1], xid=31))
        await asyncio.to_thread(node.kubelet.clients[GPU].allocate, [[node.kubelet.ids(GPU)[0]]])
        await asyncio.sleep(holding.AFTER_ALLOCATE_SECONDS * 3)  # nothing must come
        after = await cluster.admin.get(manifests.GPU_NODE, NODE)

    assert after is not None
    assert before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
    assert len(node.kubelet.lists[GPU]) == 1
