"""How nodes come to the API server, stay alive in it, and come back."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from gpushare.domain import manifests
from gpushare.kube.cluster import EventType
from gpushare.sandbox.node.specs import Pace
from support.simulated_nodes import Nodes, container, pool_of, running

GPU = "nvidia.com/gpu"


async def test_first_registration() -> None:
    """The Node, its Lease and its Events are there as soon as the fleet says that it is ready."""
    async with running("gpu01", "gpu02") as nodes:
        node = await nodes.cluster.get(manifests.NODE, "gpu02")
        assert node is not None
        assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "gpu02"
        ready = next(one for one in node["status"]["conditions"] if one["type"] == "Ready")
        assert (ready["status"], ready["reason"]) == ("True", "KubeletReady")
        lease = await nodes.until(manifests.LEASE, "gpu02", bool, "kube-node-lease")
        assert lease["spec"]["holderIdentity"] == "gpu02"
        assert lease["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]
        event = await nodes.until_event("NodeReady", "gpu02")
        assert (event["message"], event["source"]) == (
            "Node gpu02 status is now: NodeReady",
            {"component": "kubelet", "host": "gpu02"},
        )


async def test_leases_are_renewed() -> None:
    """A node that lives says so."""
    async with running("gpu01", pace=Pace(lease=0.05)) as nodes:
        first = await nodes.until(manifests.LEASE, "gpu01", bool, "kube-node-lease")
        before = first["spec"]["renewTime"]
        await nodes.until(
            manifests.LEASE, "gpu01", lambda lease: lease["spec"]["renewTime"] > before, "kube-node-lease"
        )


async def test_node_that_is_there_already() -> None:
    """A kubelet takes its Node over: labels of people stay as they are, what plugins offered counts 0."""
    async with running("gpu01") as nodes:
        await nodes.plug("gpu01", pool_of(GPU, "a", "b"))
        await nodes.until_amounts("gpu01", GPU, "2", "2")
        labels = {"mine": "kept", "kubernetes.io/hostname": "wrong"}
        await nodes.cluster.patch(manifests.NODE, "gpu01", {"metadata": {"labels": labels}})
        before = await nodes.cluster.get(manifests.NODE, "gpu01")
        async with running("gpu01", server=nodes.server) as again:
            await again.until_amounts("gpu01", GPU, "0", "0")
            node = await again.cluster.get(manifests.NODE, "gpu01")
    assert node is not None
    assert before is not None
    assert node["metadata"]["uid"] == before["metadata"]["uid"]
    assert node["metadata"]["labels"]["mine"] == "kept"
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "gpu01"


async def test_node_that_was_deleted() -> None:
    """A kubelet does not make its Node again while it runs, but when it starts."""
    async with running("gpu01") as nodes:
        await nodes.plug("gpu01", pool_of(GPU, "a"))
        await nodes.until_amounts("gpu01", GPU, "1", "1")
        await nodes.cluster.delete(manifests.NODE, "gpu01")
        await nodes.fleet.nodes["gpu01"].restart()
        await nodes.plug("gpu01", pool_of(GPU, "a", "b"))
        await nodes.until_amounts("gpu01", GPU, "2", "2")


async def test_api_server_that_goes_away() -> None:
    """Nodes and pods outlive a restart of the API server, and what changed meanwhile is written when it is back."""
    async with running("gpu01") as nodes:
        plugin = await nodes.plug("gpu01", pool_of(GPU, "a"))
        await nodes.until_amounts("gpu01", GPU, "1", "1")
        await nodes.run("web", containers=[container()])
        await nodes.until_phase("web", "Running")
        await nodes.server.pause()
        plugin.offer(pool_of(GPU, *"abc"))
        await nodes.server.resume()

        await nodes.until_amounts("gpu01", GPU, "3", "3")
        await nodes.cluster.delete(manifests.POD, "web", "default")
        await nodes.until_gone("web")


async def test_changes_are_gathered() -> None:
    """Many lists in a moment are one or two writes of the Node."""
    async with running("gpu01") as nodes:
        listed = await nodes.cluster.list(manifests.NODE)
        plugin = await nodes.plug("gpu01", pool_of(GPU, "a"))
        for number in range(2, 40):
            plugin.offer(pool_of(GPU, *map(str, range(number))))
        writes = 0
        changes = nodes.cluster.watch(manifests.NODE, resource_version=listed.resource_version)
        async for event in changes:
            if event.type is EventType.MODIFIED:
                writes += 1
                if event.object["status"]["capacity"].get(GPU) == "39":
                    break
        await changes.aclose()
    assert writes <= 5


@pytest.mark.parametrize("number", [50])
async def test_many_nodes_in_one_process(number: int) -> None:
    """Fifty nodes with a plugin each follow a change, with a bounded number of threads."""
    names = [f"n{index:02}" for index in range(number)]
    before = threading.active_count()
    async with running(*names) as nodes:
        started = [await nodes.plug(name, pool_of(GPU, "a")) for name in names]
        await asyncio.gather(*(until(nodes, name, "1") for name in names))
        for plugin in started:
            plugin.offer(pool_of(GPU, "a", "b"))
        await asyncio.gather(*(until(nodes, name, "2") for name in names))
        threads = threading.active_count() - before
    assert threads <= number * 16


async def until(nodes: Nodes, name: str, capacity: str) -> Any:
    return await nodes.until_amounts(name, GPU, capacity, capacity)
