"""Pods of a node as the API server has them, and what the kubelet tells of them: both at once, or plans would be mistaken."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence

from gpushare.agent.fractions.answering import FractionAnswers
from gpushare.agent.fractions.following import PodFollower
from gpushare.domain import manifests
from gpushare.domain.fractions import Dialect, FractionMode
from gpushare.kubelet.values import ContainerDevices
from support.bound_pods import UUIDS, bound, grant
from support.memory_cluster import MemoryCluster


async def test_pods_and_what_they_hold_are_told_at_once() -> None:
    """Of two pods that are alike, the one that has its GPU is never open again, however slowly the kubelet answers."""
    cluster = MemoryCluster()
    pods = [bound(name, {"main": (grant(gpu),)}) for gpu, name in enumerate(("a", "b"))]
    # As they are: a cluster would give them uids of its own, which their decisions do not name.
    cluster.objects.update({(manifests.POD, "default", pod["metadata"]["name"]): pod for pod in pods})
    answers = FractionAnswers(
        FractionMode(dialect=Dialect.HAMI), refresh=lambda: None, library=None, on_other=lambda *_: None
    )
    told, known = asyncio.Event(), []

    async def read_holders() -> Sequence[ContainerDevices]:
        with answers.changing() as flight:
            known.append(len(flight.pods))
        ids = (f"{UUIDS[0]}::0",)
        return [ContainerDevices(namespace="default", pod="a", container="main", resource="nvidia.com/gpu", ids=ids)]

    node = pods[0]["spec"]["nodeName"]
    log = logging.getLogger("test")
    follower = PodFollower(cluster, node, answers, log, read_holders=read_holders, on_change=told.set)
    running = asyncio.create_task(follower.run())
    await told.wait()
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running

    assert known == [0]
    with answers.changing() as flight:
        assert [entry.pod.title for entry in flight.find(1)] == ["default/b"]
