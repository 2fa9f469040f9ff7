"""The scheduler's process against a cluster in memory."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager

import pytest

from gpushare.domain import manifests
from gpushare.errors import ClusterUnavailable
from gpushare.sandbox import scheduling
from support import workload_objects as objects
from support.memory_cluster import MemoryCluster


@asynccontextmanager
async def running(cluster: MemoryCluster):
    stop = asyncio.Event()
    task = asyncio.create_task(scheduling.run(cluster, logging.getLogger(__name__), stop))
    try:
        yield
    finally:
        stop.set()
        await task


def node_of(cluster: MemoryCluster, name: str) -> str:
    return cluster.now(manifests.POD, name, "default")["spec"].get("nodeName", "")


def condition_of(cluster: MemoryCluster, name: str):
    conditions = cluster.now(manifests.POD, name, "default")["status"].get("conditions", [])
    return next((condition for condition in conditions if condition["type"] == "PodScheduled"), None)


def reasons(cluster: MemoryCluster) -> list[str]:
    return [event["reason"] for event in cluster.all(manifests.EVENT)]


async def test_bind():
    """Pods are spread over nodes and say where they went."""
    cluster = MemoryCluster()
    for name in ("a", "b"):
        await cluster.create(objects.node(name))
    async with running(cluster):
        for name in ("one", "two"):
            await cluster.create(objects.pod(name))
        await cluster.until(lambda: len(cluster.all(manifests.EVENT)) == 2)

    assert {node_of(cluster, "one"), node_of(cluster, "two")} == {"a", "b"}
    assert cluster.all(manifests.EVENT)[0]["message"] == "Successfully assigned default/one to b"
    assert reasons(cluster) == ["Scheduled", "Scheduled"]


async def test_never_too_many():
    """Pods that come at once do not get the same GPU twice; the last one is told why it waits."""
    cluster = MemoryCluster()
    await cluster.create(objects.node("a", gpu="4"))
    async with running(cluster):
        for number in range(5):
            await cluster.create(objects.pod(f"pod-{number}", gpu="1"))
        await cluster.until(lambda: condition_of(cluster, "pod-4") is not None)
        await cluster.until(lambda: len(cluster.all(manifests.EVENT)) == 5)

    assert [node_of(cluster, f"pod-{number}") for number in range(5)] == ["a", "a", "a", "a", ""]
    condition = condition_of(cluster, "pod-4")
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    assert condition["message"].startswith("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")
    assert sorted(reasons(cluster)) == ["FailedScheduling", *["Scheduled"] * 4]


@pytest.mark.parametrize("remedy", ["node grows", "pod goes", "pod ends", "node comes"])
async def test_at_once_when_it_helps(remedy):
    """A waiting pod is bound as soon as something makes room for it."""
    cluster = MemoryCluster()
    await cluster.create(objects.node("a", gpu="1"))
    await cluster.create(objects.pod("first", node="a", gpu="1"))
    async with running(cluster):
        await cluster.create(objects.pod("second", gpu="1"))
        await cluster.until(lambda: condition_of(cluster, "second") is not None)
        match remedy:
            case "node grows":
                await cluster.patch(manifests.NODE, "a", {"status": {"allocatable": {"nvidia.com/gpu": "4"}}})
            case "pod goes":
                await cluster.delete(manifests.POD, "first", "default", grace_seconds=0)
            case "pod ends":
                await cluster.patch(manifests.POD, "first", {"status": {"phase": "Succeeded"}}, "default")
            case _:
                await cluster.create(objects.node("b", gpu="1"))
        await cluster.until(lambda: node_of(cluster, "second") != "")


async def test_binding_fails():
    """A binding that the API server could not take is made again."""
    cluster = MemoryCluster()
    await cluster.create(objects.node("a"))
    async with running(cluster):
        cluster.refusals["bind Pod"] = ClusterUnavailable("restarting")
        await cluster.create(objects.pod("one"))
        await cluster.until(lambda: node_of(cluster, "one") == "a")


async def test_quiet():
    """A pod that does not fit is written about once, however often nodes beat."""
    cluster = MemoryCluster()
    await cluster.create(objects.node("a"))
    async with running(cluster):
        await cluster.create(objects.pod("big", gpu="1"))
        await cluster.until(lambda: condition_of(cluster, "big") is not None)
        await cluster.until(lambda: len(cluster.all(manifests.EVENT)) == 1)
        before = list(cluster.writes)
        for number in range(3):
            await cluster.patch(manifests.NODE, "a", {"metadata": {"labels": {"beat": str(number)}}})
        await cluster.create(objects.pod("small"))
        await cluster.until(lambda: len(cluster.all(manifests.EVENT)) == 2)

    assert [write for write in cluster.writes[len(before) :] if "big" in write] == []
