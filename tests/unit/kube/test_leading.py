"""Who leads."""

import asyncio
import logging
from datetime import UTC, datetime

import pytest

from gpushare import names
from gpushare.domain import manifests
from gpushare.errors import ClusterUnavailable
from gpushare.kube import leading
from gpushare.kube.leading import Lease
from support.memory_cluster import MemoryCluster

NAMESPACE = "gpu-operator"
NOW = datetime(2026, 11, 29, 12, 0, 0, 5, tzinfo=UTC)


@pytest.fixture
def cluster() -> MemoryCluster:
    return MemoryCluster()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds become hundredths."""
    monkeypatch.setattr(leading, "_RENEW_SECONDS", 0.05)
    monkeypatch.setattr(leading, "_GIVE_UP_SECONDS", 0.1)


def lease(cluster: MemoryCluster, identity: str) -> Lease:
    return Lease(cluster, NAMESPACE, names.LEASE, identity, log=logging.getLogger("test"), now=lambda: NOW)


def spec(cluster: MemoryCluster) -> dict:
    return cluster.now(manifests.LEASE, names.LEASE, NAMESPACE)["spec"]


async def held(cluster: MemoryCluster, holder: str, **fields: object) -> None:
    await lease(cluster, holder).acquire()
    stored = cluster.now(manifests.LEASE, names.LEASE, NAMESPACE)
    stored["spec"] |= fields


async def test_first(cluster: MemoryCluster) -> None:
    """Without a Lease the first one leads at once, with times as the API wants them."""
    await lease(cluster, "one").acquire()

    assert spec(cluster) == {
        "holderIdentity": "one",
        "leaseDurationSeconds": 12,
        "acquireTime": "2026-11-29T12:00:00.000005Z",
        "renewTime": "2026-11-29T12:00:00.000005Z",
        "leaseTransitions": 0,
    }


@pytest.mark.parametrize(
    ("holder", "fields", "transitions"),
    [
        pytest.param("two", {}, 0, id="ours before a restart"),
        pytest.param("one", {"holderIdentity": None}, 1, id="released"),
        pytest.param("one", {"renewTime": "2026-11-29T10:00:00.000000Z"}, 1, id="ran out long ago"),
    ],
)
async def test_taken_at_once(cluster: MemoryCluster, holder: str, fields: dict, transitions: int) -> None:
    """Who is alone does not wait."""
    await held(cluster, holder, **fields)

    await lease(cluster, "two").acquire()

    assert (spec(cluster)["holderIdentity"], spec(cluster)["leaseTransitions"]) == ("two", transitions)


async def test_another_leads(cluster: MemoryCluster) -> None:
    """While somebody renews the Lease, nobody takes it; when they stop, it is taken after its time."""
    await held(cluster, "one", leaseDurationSeconds=0.1)
    waiting = asyncio.create_task(lease(cluster, "two").acquire())
    one = lease(cluster, "one")
    for _ in range(5):
        await asyncio.sleep(0.04)
        await one._try()
        spec(cluster)["leaseDurationSeconds"] = 0.1
    assert not waiting.done()

    await waiting

    assert spec(cluster)["holderIdentity"] == "two"


async def test_lost(cluster: MemoryCluster) -> None:
    """Who finds somebody else in the Lease stops leading."""
    one = lease(cluster, "one")
    await one.acquire()
    holding = asyncio.create_task(one.hold())
    await asyncio.sleep(0.06)
    assert not holding.done()

    spec(cluster)["holderIdentity"] = "two"

    await holding


async def test_server_away(cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who cannot renew stops leading before the Lease has run out for others."""
    one = lease(cluster, "one")
    await one.acquire()

    async def away(_: object) -> None:
        raise ClusterUnavailable("away")

    monkeypatch.setattr(cluster, "replace", away)

    await one.hold()


async def test_release(cluster: MemoryCluster) -> None:
    """Who stops makes room, and takes nothing from anybody else."""
    one = lease(cluster, "one")
    await one.acquire()
    await one.release()
    assert "holderIdentity" not in spec(cluster)

    await lease(cluster, "two").acquire()
    await one.release()
    assert spec(cluster)["holderIdentity"] == "two"


async def test_holder(cluster: MemoryCluster) -> None:
    """Who waits knows who leads, so that it can pass on what only the leader may answer."""
    await held(cluster, "one")
    two = lease(cluster, "two")
    waiting = asyncio.create_task(two.acquire())
    await asyncio.sleep(0.01)
    assert two.holder == "one"

    await lease(cluster, "one").release()
    await waiting

    assert two.holder == "two"


async def test_two_elections(cluster: MemoryCluster) -> None:
    """Controller and scheduler elect apart from each other."""
    await lease(cluster, "one").acquire()

    await Lease(cluster, NAMESPACE, names.LEASE_SCHEDULER, "two", log=logging.getLogger("test")).acquire()

    assert spec(cluster)["holderIdentity"] == "one"
