"""Events in the forms that kubectl shows."""

import asyncio
import contextlib
import logging

import pytest

from gpushare.domain import manifests
from gpushare.domain.events import EventNote, EventType
from gpushare.domain.manifests import ObjectKey
from gpushare.errors import ClusterRefused
from gpushare.kube.events import EventPoster, Source, build_event
from support.memory_cluster import MemoryCluster

NOW = "2026-11-29T12:00:00Z"
SOURCE = Source("gpushare-test", "tests")


def note(regarding: ObjectKey, uid: str = "u", message: str = "m") -> EventNote:
    return EventNote(regarding=regarding, uid=uid, reason="ConfigRefused", type=EventType.WARNING, message=message)


POLICY = ObjectKey(manifests.CLUSTER_POLICY, "cluster-policy")
NODE = ObjectKey(manifests.NODE, "gpu01")
CONFIG_MAP = ObjectKey(manifests.CONFIG_MAP, "time-slicing", "gpu-operator")


@pytest.mark.parametrize(
    ("regarding", "uid", "namespace", "involved"),
    [
        pytest.param(
            POLICY,
            "u",
            "default",
            {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "name": "cluster-policy", "uid": "u"},
            id="policy: in default, by uid, without a namespace",
        ),
        pytest.param(
            NODE, "u", "default", {"apiVersion": "v1", "kind": "Node", "name": "gpu01", "uid": "u"}, id="node"
        ),
        pytest.param(
            CONFIG_MAP,
            "",
            "gpu-operator",
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "time-slicing", "namespace": "gpu-operator"},
            id="ConfigMap that does not exist: in its namespace",
        ),
    ],
)
def test_forms(regarding: ObjectKey, uid: str, namespace: str, involved: dict) -> None:
    """`kubectl describe` and `kubectl get events` find each of them, with an age."""
    event = build_event(note(regarding, uid), SOURCE, NOW)

    assert event["metadata"]["namespace"] == namespace
    assert event["involvedObject"] == involved
    assert (event["firstTimestamp"], event["lastTimestamp"], event["count"]) == (NOW, NOW, 1)


def test_long_names_and_messages() -> None:
    """The API's limits hold."""
    event = build_event(note(ObjectKey(manifests.NODE, "n" * 253), message="x" * 5000), SOURCE, NOW)

    assert len(event["metadata"]["name"]) <= 253
    assert len(event["message"]) == 1024


@contextlib.asynccontextmanager
async def posting(cluster: MemoryCluster):
    poster = EventPoster(cluster, source=SOURCE, now=lambda: NOW, log=logging.getLogger("test"))
    task = asyncio.create_task(poster.run())
    try:
        yield poster
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def counts(cluster: MemoryCluster) -> list[tuple[str, int]]:
    return sorted((event["message"], event["count"]) for event in cluster.all(manifests.EVENT))


async def test_repeated() -> None:
    """The same again counts up; something else is another Event."""
    cluster = MemoryCluster()
    async with posting(cluster) as poster:
        for message in ("a", "b", "a"):
            poster.post([note(NODE, message=message)])
            await cluster.until(lambda said=message: said in {each for each, _ in counts(cluster)})
        await cluster.until(lambda: counts(cluster) == [("a", 2), ("b", 1)])


async def test_repeated_after_a_restart() -> None:
    """A controller that has just started finds the Event of its predecessor."""
    cluster = MemoryCluster()
    for expected in (1, 2):
        async with posting(cluster) as poster:
            poster.post([note(NODE)])
            await cluster.until(lambda count=expected: counts(cluster) == [("m", count)])


async def test_gone_meanwhile() -> None:
    """An Event that has run out is made anew."""
    cluster = MemoryCluster()
    async with posting(cluster) as poster:
        poster.post([note(NODE)])
        await cluster.until(lambda: counts(cluster) == [("m", 1)])
        cluster.objects.clear()
        poster.post([note(NODE)])
        await cluster.until(lambda: counts(cluster) == [("m", 1)])


async def test_refused(caplog: pytest.LogCaptureFixture) -> None:
    """An Event that cannot be posted is logged, and the next one is tried."""
    cluster = MemoryCluster()
    cluster.refusals = {"create Event": ClusterRefused("forbidden", code=403)}
    async with posting(cluster) as poster:
        poster.post([note(NODE, message="a"), note(NODE, message="b")])
        await cluster.until(lambda: len(cluster.all(manifests.EVENT)) == 1)
        poster.post([note(NODE, message="c")])
        await cluster.until(lambda: len(cluster.all(manifests.EVENT)) == 2)

    assert caplog.records[0].getMessage() == "events not posted"
