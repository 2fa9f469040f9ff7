"""Who leads."""

import asyncio
import logging
from datetime import UTC, datetime
from typing import Any

import pytest

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.errors import ClusterUnavailable
from gpushare.kube.leading import Lease
from support.memory_cluster import MemoryCluster

NAMESPACE = "gpu-operator"
NOW = datetime(2026, 11, 29, 12, 0, 0, 5, tzinfo=UTC)
DURATION = 12

pytestmark = pytest.mark.usefixtures("skipped_time")


@pytest.fixture
def cluster() -> MemoryCluster:
    return MemoryCluster()


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
        "leaseDurationSeconds": DURATION,
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
    one, clock = lease(cluster, "one"), asyncio.get_running_loop().time
    await one.acquire()
    waiting = asyncio.create_task(lease(cluster, "two").acquire())
    for _ in range(5):
        await asyncio.sleep(DURATION - 1)
        await one._try()
    assert not waiting.done()

    renewed = clock()
    await waiting

    assert spec(cluster)["holderIdentity"] == "two"
    assert DURATION <= clock() - renewed <= DURATION + 2


async def test_lost(cluster: MemoryCluster) -> None:
    """Who finds somebody else in the Lease stops leading."""
    one = lease(cluster, "one")
    await one.acquire()
    holding = asyncio.create_task(one.hold())
    await asyncio.sleep(60)
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
    clock = asyncio.get_running_loop().time
    renewed = clock()

    await one.hold()

    assert clock() - renewed < DURATION - 1


async def test_server_hangs(cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does a server that takes requests and never answers make it lead for longer than it may."""
    one, clock = lease(cluster, "one"), asyncio.get_running_loop().time
    await one.acquire()
    replace = cluster.replace

    async def slow(manifest: Manifest) -> Manifest:
        await replace(manifest)
        renewals.append(clock())
        await asyncio.sleep(3)
        return manifest

    async def hanging(_: object) -> None:
        await asyncio.Event().wait()

    renewals: list[float] = []
    monkeypatch.setattr(cluster, "replace", slow)
    holding = asyncio.create_task(one.hold())
    await asyncio.sleep(8)
    monkeypatch.setattr(cluster, "replace", hanging)
    await holding

    assert clock() - renewals[-1] <= DURATION - 4


async def test_trouble_is_told_once(
    cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Who cannot even look says why at once, and again where that changes or lasts; and does not try all the time."""
    look, clock, tries = cluster.get, asyncio.get_running_loop().time, 0
    began = clock()

    async def get(*place: Any) -> Manifest | None:
        nonlocal tries
        tries += 1
        if clock() - began < 600:
            raise ClusterUnavailable("away" if clock() - began < 60 else "no namespace")
        return await look(*place)

    monkeypatch.setattr(cluster, "get", get)

    await lease(cluster, "one").acquire()

    told = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert [vars(record)["reason"] for record in told] == ["away", "no namespace", "no namespace"]
    assert 120 <= tries <= 260


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
    await two.looked.wait()
    assert two.holder == "one"

    await lease(cluster, "one").release()
    await waiting

    assert two.holder == "two"


async def test_two_elections(cluster: MemoryCluster) -> None:
    """Controller and scheduler elect apart from each other."""
    await lease(cluster, "one").acquire()

    await Lease(cluster, NAMESPACE, names.LEASE_SCHEDULER, "two", log=logging.getLogger("test")).acquire()

    assert spec(cluster)["holderIdentity"] == "one"
