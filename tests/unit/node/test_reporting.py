"""Writing the status of a pod."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gpushare.domain import manifests
from gpushare.errors import ClusterRefused, ClusterUnavailable
from gpushare.sandbox.node.reporting import StatusWriter
from support.memory_cluster import MemoryCluster

LOG = logging.getLogger(__name__)


def condition(status: str, **more: str) -> dict[str, Any]:
    return {"conditions": [{"type": "Ready", "status": status, **more}]}


class Pod:
    """A pod in a cluster, and the status that it should have."""

    def __init__(self) -> None:
        self.cluster = MemoryCluster()
        self.wanted: dict[str, Any] = {}

    @asynccontextmanager
    async def writer(self, **status: Any) -> AsyncIterator[StatusWriter]:
        pod = await self.cluster.create(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ns"}, "status": status}
        )
        self.cluster.writes.clear()
        writer = StatusWriter(self.cluster, pod, lambda: self.wanted, LOG)
        task = asyncio.create_task(writer.run())
        yield writer
        task.cancel()

    @property
    def status(self) -> Any:
        return self.cluster.now(manifests.POD, "p", "ns")["status"]


async def test_only_changes_are_written() -> None:
    """Asking again for the same status costs nothing."""
    pod = Pod()
    async with pod.writer() as writer:
        pod.wanted = {"phase": "Running"}
        for _ in range(3):
            writer.request()
            await writer.flush()
    assert pod.cluster.writes == ["patch Pod p/status"]
    assert pod.status == {"phase": "Running"}


async def test_what_a_condition_no_longer_says() -> None:
    """Reason and message go with the state that they explained, also those that somebody else wrote."""
    pod = Pod()
    async with pod.writer(**condition("False", reason="Unschedulable", message="no room")) as writer:
        pod.wanted = condition("True")
        writer.request()
        await writer.flush()
        (written,) = pod.status["conditions"]
        assert {key: value for key, value in written.items() if value} == condition("True")["conditions"][0]


@pytest.mark.parametrize("failure", [ClusterUnavailable("gone"), ClusterRefused("not now", code=403)])
async def test_failures_are_retried(failure: Exception) -> None:
    """An API server that is away gets the newest status when it is back."""
    pod = Pod()
    async with pod.writer() as writer:
        pod.cluster.refusals["patch Pod"] = failure
        pod.wanted = {"phase": "Running"}
        writer.request()
        await writer.flush()
    assert pod.status == {"phase": "Running"}


async def test_mute() -> None:
    """A node that ends writes no more."""
    pod = Pod()
    async with pod.writer() as writer:
        writer.mute()
        pod.wanted = {"phase": "Failed"}
        writer.request()
        await writer.flush()
    assert pod.cluster.writes == []
