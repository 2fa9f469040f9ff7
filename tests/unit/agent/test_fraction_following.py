"""Pods of a node as the API server has them, and what the kubelet tells of them: both at once, or plans would be mistaken."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from gpushare.agent.fractions.answering import FractionAnswers
from gpushare.agent.fractions.following import PodFollower
from gpushare.domain import manifests
from gpushare.domain.fractions import Dialect, FractionMode
from gpushare.kubelet.values import ContainerDevices
from support.bound_pods import NODE, UUIDS, bound, grant
from support.memory_cluster import MemoryCluster

LOG = logging.getLogger("test")


class Kubelet:
    """Always answers, by a function."""

    def __init__(self, answer: Callable[[], Awaitable[Sequence[ContainerDevices]]]) -> None:
        self.ask = self.read = answer


def cluster_of_two() -> MemoryCluster:
    cluster = MemoryCluster()
    pods = [bound(name, {"main": (grant(gpu),)}) for gpu, name in enumerate(("a", "b"))]
    # As they are: a cluster would give them uids of its own, which their decisions do not name.
    cluster.objects.update({(manifests.POD, "default", pod["metadata"]["name"]): pod for pod in pods})
    return cluster


def hami_answers() -> FractionAnswers:
    return FractionAnswers(
        FractionMode(dialect=Dialect.HAMI), refresh=lambda: None, library=None, on_other=lambda *_: None
    )


@contextlib.asynccontextmanager
async def following(follower: PodFollower) -> AsyncIterator[None]:
    running = asyncio.create_task(follower.run())
    yield
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


async def test_pods_and_what_they_hold_are_told_at_once() -> None:
    """Of two pods that are alike, the one that has its GPU is never open again, however slowly the kubelet answers."""
    cluster, answers = cluster_of_two(), hami_answers()
    told, known = asyncio.Event(), []

    async def read_holders() -> Sequence[ContainerDevices]:
        with answers.changing() as flight:
            known.append(len(flight.pods))
        ids = (f"{UUIDS[0]}::0",)
        return [ContainerDevices(namespace="default", pod="a", container="main", resource="nvidia.com/gpu", ids=ids)]

    async with following(PodFollower(cluster, NODE, answers, LOG, kubelet=Kubelet(read_holders), on_change=told.set)):
        await told.wait()

    assert known == [0]
    with answers.changing() as flight:
        assert [entry.pod.title for entry in flight.find(1)] == ["default/b"]


async def test_pod_that_goes_while_it_is_listed() -> None:
    """A list that still has it does not bring it back."""
    cluster, answers = cluster_of_two(), hami_answers()
    told = asyncio.Event()
    going = ["b"]

    async def read_holders() -> Sequence[ContainerDevices]:
        if told.is_set() and going:
            await cluster.delete(manifests.POD, going.pop(), "default", grace_seconds=0)
            for _ in range(9):  # the watch has all the time that it wants
                await asyncio.sleep(0)
        return []

    follower = PodFollower(cluster, NODE, answers, LOG, kubelet=Kubelet(read_holders), on_change=told.set)
    async with following(follower):
        await told.wait()
        follower.refresh()
        while going:  # noqa: ASYNC110 - it goes in this loop
            await asyncio.sleep(0)
        for _ in range(9):
            await asyncio.sleep(0)

    with answers.changing() as flight:
        assert [pod.title for pod in flight.pods.values()] == ["default/a"]
