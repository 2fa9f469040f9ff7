"""Several replicas: one decides, the others hand on, and the next one knows all that was decided."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator

import pytest

from gpushare import names
from gpushare.domain import manifests
from gpushare.errors import ClusterUnavailable
from support.placements import hami
from support.schedulers import NAMESPACE, Fractions, Replica

SMALL = hami(gpus=1, mem=1000)


@pytest.fixture
async def fractions() -> Fractions:
    found = Fractions()
    await found.add_node("n1")
    return found


@contextlib.asynccontextmanager
async def pair(fractions: Fractions) -> AsyncIterator[tuple[Replica, Replica]]:
    """The leader, and one that follows it."""
    async with fractions.replica("one") as leader, fractions.replica("two") as follower:
        assert leader.scheduler._leading.is_leading
        assert not follower.scheduler._leading.is_leading
        yield leader, follower


async def test_followers_hand_on(fractions: Fractions) -> None:
    """Whichever replica is asked, the leader decides: only it knows what it has just reserved."""
    async with pair(fractions) as (leader, follower):
        asked = await fractions.add_pod("a", SMALL)

        assert await follower.filter(asked, "n1") == (["n1"], {})
        assert await follower.bind(asked, "n1") == ""
        assert leader.scheduler._binder.counts.bound == 1
        assert follower.scheduler._binder.counts.bound == 0


async def test_handed_on_once(fractions: Fractions) -> None:
    """Two replicas that each take the other for the leader do not play ping-pong."""
    async with pair(fractions) as (_, follower):
        asked = await fractions.add_pod("a", SMALL)
        body = {"Pod": asked, "NodeNames": ["n1"]}

        status, answer = await follower.ask("POST", "/filter", body, headers=[("x-gpushare-forwarded", "true")])

        assert status == 200
        assert answer["Error"] == "this replica no longer leads"


async def test_a_leader_that_stops(fractions: Fractions) -> None:
    """The next one leads at once, and knows every pod that the last one has bound."""
    async with pair(fractions) as (leader, follower):
        assert await leader.bind(await fractions.add_pod("a", hami(gpus=1, mem=15000)), "n1") == ""
        await leader.stop()
        await follower.until(lambda: follower.scheduler._leading.is_leading)

        asked = await fractions.add_pod("b", hami(gpus=2, mem=1000))
        assert (await follower.filter(asked, "n1"))[0] == []
        # The first pod was never confirmed: it is still on its way, whoever leads.
        waiting = asyncio.create_task(follower.bind(await fractions.add_pod("c", SMALL), "n1"))
        await follower.until(lambda: follower.books.flights.counts == (1, 1))
        await fractions.confirm("a")
        assert await waiting == ""


async def test_a_leader_that_steps_down(fractions: Fractions) -> None:
    """Whoever waits for a pod to be bound is answered, with words for the pod's event."""
    async with fractions.replica("one") as replica:
        assert await replica.bind(await fractions.add_pod("a", SMALL), "n1") == ""
        waiting = asyncio.create_task(replica.bind(await fractions.add_pod("b", hami(gpus=2, mem=1000)), "n1"))
        await replica.until(lambda: replica.books.flights.counts == (1, 1))
        await replica.scheduler._binder.stop()

        assert await waiting == "this replica no longer decides; the pod is tried again"


async def test_what_no_watch_has_told_yet(fractions: Fractions) -> None:
    """A new leader reads the pods anew: the last one may have bound one in its last moment."""
    async with pair(fractions) as (leader, follower):
        tell = fractions.cluster._tell
        fractions.cluster._tell = lambda *_: None  # type: ignore[method-assign]
        asked = await fractions.add_pod("a", hami(gpus=1, mem=15000))
        assert await leader.bind(asked, "n1") == ""
        assert asked["metadata"]["uid"] not in follower.books.pods
        await leader.stop()
        await follower.until(lambda: follower.scheduler._leading.is_leading)

        assert asked["metadata"]["uid"] in follower.books.pods
        fractions.cluster._tell = tell  # type: ignore[method-assign]


async def test_a_leader_that_is_gone(fractions: Fractions) -> None:
    """An answer in words, also while nobody is there to decide."""
    async with pair(fractions) as (leader, follower):
        await leader.stop()
        follower.scheduler._leading._lease.holder = "one@127.0.0.1:1"
        follower.scheduler._leading.is_leading = False
        status, answer = await follower.ask("POST", "/bind", {})

        assert status == 200
        assert "the replica of gpushare scheduler that decides, 127.0.0.1:1, does not answer" in answer["Error"]


async def test_nobody_leads(fractions: Fractions) -> None:
    """Nobody is asked twice within one call: it waits, and then says so."""
    async with fractions.replica("one", seconds=1.0) as replica:
        replica.scheduler._leading.is_leading = False
        asked = await fractions.add_pod("a", SMALL)

        status, answer = await replica.ask("POST", "/filter", {"Pod": asked, "NodeNames": ["n1"]})
        assert (status, answer) == (
            200,
            {"Error": "no replica of gpushare scheduler is ready to decide; it is tried again"},
        )
        assert (await replica.ask("GET", "/readyz"))[0] == 503
        assert await replica.ask("POST", "/prioritize", {"Pod": asked, "NodeNames": ["n1"]}) == (200, [])
        assert (await replica.ask("POST", "/preempt", {"Pod": asked}))[1] == {"NodeNameToMetaVictims": {}}


async def test_two_leaders_by_mistake(fractions: Fractions) -> None:
    """Replicas that hold no Lease both decide; each says so as soon as it sees what the other did."""
    async with fractions.replica("one", elect=False) as one, fractions.replica("two", elect=False) as two:
        assert await one.bind(await fractions.add_pod("a", SMALL), "n1") == ""
        await two.until(lambda: two.scheduler._telling.strangers == 1)
        await fractions.cluster.until(lambda: bool(fractions.cluster.all(manifests.EVENT)))

        [event] = fractions.cluster.all(manifests.EVENT)
        assert "another gpushare scheduler has decided about this pod on n1" in event["message"]
        assert one.scheduler._telling.strangers == 0
        assert "gpushare_scheduler_strangers_total 1.0" in (await two.ask("GET", "/metrics"))[1]


async def test_one_certificate_for_all(fractions: Fractions) -> None:
    """Made by the first, shared by the second, told to the webhook's configuration."""
    await fractions.cluster.create(
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": names.SCHEDULER},
            "webhooks": [{"name": "pods.gpushare.dev", "clientConfig": {"service": {"name": "x", "namespace": "y"}}}],
        }
    )
    async with pair(fractions) as (leader, follower):
        assert leader.scheduler._certificate.trusted == follower.scheduler._certificate.trusted
        secret = fractions.cluster.now(manifests.SECRET, names.SECRET_SCHEDULER, NAMESPACE)
        webhook = fractions.cluster.now(manifests.MUTATING_WEBHOOK_CONFIGURATION, names.SCHEDULER)["webhooks"][0]
        assert webhook["clientConfig"]["caBundle"] == secret["data"]["ca.crt"]
        assert base64.b64decode(secret["data"]["ca.crt"]).decode() == leader.scheduler._certificate.trusted


async def test_before_everything_was_read(fractions: Fractions) -> None:
    """Calls wait until the books are complete; readiness says of what they are not."""
    listing = fractions.cluster.list
    reached, gate = asyncio.Event(), asyncio.Event()

    async def slow(kind: manifests.Kind, *place: str, **more: object) -> object:
        if kind == manifests.POD:
            reached.set()
            await gate.wait()
        return await listing(kind, *place, **more)  # type: ignore[arg-type]

    fractions.cluster.list = slow  # type: ignore[method-assign, assignment]
    async with asyncio.TaskGroup() as group:
        starting = group.create_task(_filter_at_start(fractions))
        await asyncio.wait_for(reached.wait(), 60)
        replica = fractions.replicas["one"]
        await replica.until(lambda: replica.scheduler._following.missing == ("pods",))
        assert replica.scheduler._monitoring.why_not_ready() == "not everything has been seen yet of pods"
        gate.set()
        assert await starting == ["n1"]


async def _filter_at_start(fractions: Fractions) -> list[str]:
    async with fractions.replica("one") as replica:
        return (await replica.filter(await fractions.add_pod("a", SMALL), "n1"))[0]


async def test_the_api_server_is_away(fractions: Fractions) -> None:
    """A pod that cannot be read is not bound; the reason is said, and nothing is reserved."""
    async with fractions.replica("one") as replica:
        asked = await fractions.add_pod("a", SMALL)

        async def fail(*_: object, **__: object) -> None:
            raise ClusterUnavailable("API server: no answer in time")

        getting, fractions.cluster.get = fractions.cluster.get, fail  # type: ignore[method-assign, assignment]
        assert await replica.bind(asked, "n1") == "the pod cannot be read: API server: no answer in time"
        fractions.cluster.get = getting  # type: ignore[method-assign]
        assert replica.books.pods == {}
