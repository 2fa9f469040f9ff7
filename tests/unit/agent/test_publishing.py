"""Writing the status: when, how often, and what when it fails."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gpushare.agent import publishing
from gpushare.agent.keeping import keep
from gpushare.agent.publishing import Publisher
from gpushare.domain.conditions import Condition
from gpushare.domain.manifests import Manifest
from gpushare.errors import ClusterRefused, ClusterUnavailable, GpuShareError
from gpushare.kube.backoff import Backoff

LOG = logging.getLogger("test")
NODE: Manifest = {"metadata": {"name": "gpu01", "uid": "1"}}

pytestmark = pytest.mark.usefixtures("skipped_time")


class Cluster:
    """Takes what is applied, or refuses it."""

    def __init__(self) -> None:
        self.applied: asyncio.Queue[Manifest] = asyncio.Queue()
        self.failures: list[Exception] = []
        self.version = 10

    async def apply(self, manifest: Manifest, *, manager: str, force: bool, subresource: str) -> Manifest:
        if self.failures:
            raise self.failures.pop(0)
        assert (manager, force, subresource) == ("gpushare-agent", True, "status")
        self.applied.put_nowait(manifest)
        self.version += 1
        return {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": str(self.version)}}

    async def next(self) -> Manifest:
        async with asyncio.timeout(60):
            return await self.applied.get()


def status(number: int, *, good: bool = True) -> dict[str, Any]:
    condition = Condition(type="T", status="True" if good else "False", reason="R")
    return {"number": number, "conditions": [condition.to_json()]}


@contextlib.asynccontextmanager
async def running(cluster: Cluster) -> AsyncIterator[Publisher]:
    publisher = Publisher(cluster, "gpu01", LOG)  # type: ignore[arg-type]
    task = asyncio.create_task(publisher.run())
    try:
        yield publisher
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_waits_for_the_object() -> None:
    """There is nothing to write to before the controller has made it."""
    cluster = Cluster()
    async with running(cluster) as publisher:
        publisher.offer(status(1), urgent=True)
        publisher.see(None)
        await asyncio.sleep(0)
        assert cluster.applied.empty()
        publisher.see(NODE)

        manifest = await cluster.next()

    assert manifest["metadata"] == {"name": "gpu01", "uid": "1"}
    assert manifest["status"]["number"] == 1


async def test_at_most_once_in_a_while_and_only_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not urgent waits; what was overtaken is never written; what is the same is not written."""
    monkeypatch.setattr(publishing, "INTERVAL_SECONDS", 0.05)
    cluster = Cluster()
    async with running(cluster) as publisher:
        publisher.see(NODE)
        publisher.offer(status(1), urgent=False)
        assert (await cluster.next())["status"]["number"] == 1
        publisher.offer(status(2), urgent=False)
        publisher.offer(status(3), urgent=False)
        publisher.see(NODE)
        assert (await cluster.next())["status"]["number"] == 3
        publisher.offer(status(3), urgent=True)
        publisher.offer(status(4), urgent=False)
        publisher.offer(status(3), urgent=False)
        await asyncio.sleep(0.1)

    assert cluster.applied.empty()


async def test_urgent_goes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result of a configuration does not wait for the pause to end."""
    monkeypatch.setattr(publishing, "INTERVAL_SECONDS", 1000)
    cluster = Cluster()
    async with running(cluster) as publisher:
        publisher.see(NODE)
        publisher.offer(status(1), urgent=False)
        await cluster.next()
        publisher.offer(status(2), urgent=True)

        assert (await cluster.next())["status"]["number"] == 2


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(ClusterUnavailable("no answer"), id="unavailable"),
        pytest.param(ClusterRefused("forbidden", code=403), id="refused"),
    ],
)
async def test_failures_are_tried_again(
    failure: GpuShareError, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Until it works, with what is newest by then."""
    monkeypatch.setattr(publishing, "REFUSED_SECONDS", 0.05)
    cluster = Cluster()
    cluster.failures = [failure]
    async with running(cluster) as publisher:
        publisher.see(NODE)
        publisher.offer(status(1), urgent=False)

        assert (await cluster.next())["status"]["number"] == 1
    assert caplog.messages == ["status not published"]


async def test_defect_of_ours_loses_nothing() -> None:
    """Where it starts again after what nobody has thought of, it writes what it could not write before."""
    cluster = Cluster()
    cluster.failures = [KeyError("metadata")]
    publisher = Publisher(cluster, "gpu01", LOG)  # type: ignore[arg-type]
    task = asyncio.create_task(keep(publisher.run, LOG))
    publisher.see(NODE)
    publisher.offer(status(1), urgent=True)
    manifest = await cluster.next()
    task.cancel()
    await asyncio.wait([task])

    assert manifest["status"]["number"] == 1


async def test_what_answers_again_is_told_at_once() -> None:
    """A watch that is back says that a server is, however long the next try would have waited."""
    cluster = Cluster()
    cluster.failures = [ClusterUnavailable("no answer")]
    async with running(cluster) as publisher:
        publisher._backoff = Backoff(first=1000, most=1000)
        publisher.see(NODE)
        publisher.offer(status(1), urgent=False)
        while cluster.failures:  # noqa: ASYNC110 - the failure itself tells nobody
            await asyncio.sleep(0)
        publisher.see(NODE)

        assert (await cluster.next())["status"]["number"] == 1


async def test_another_object_is_told_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was made anew under the same name has no status yet."""
    cluster = Cluster()
    async with running(cluster) as publisher:
        publisher.see(NODE)
        publisher.offer(status(1), urgent=False)
        await cluster.next()
        publisher.see({"metadata": {"name": "gpu01", "uid": "2"}})

        assert (await cluster.next())["metadata"]["uid"] == "2"


async def test_conditions_keep_their_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is that of the change, also over a restart of the agent."""
    monkeypatch.setattr(publishing.clock, "now", lambda: "now")
    cluster = Cluster()
    before = Condition(type="T", status="True", reason="R", last_transition_time="before")
    async with running(cluster) as publisher:
        publisher.see({**NODE, "status": {"conditions": [before.to_json()]}})
        publisher.offer(status(1), urgent=True)
        assert (await cluster.next())["status"]["conditions"][0]["lastTransitionTime"] == "before"
        publisher.offer(status(1, good=False), urgent=True)
        assert (await cluster.next())["status"]["conditions"][0]["lastTransitionTime"] == "now"


def seen(version: int, number: int, *conditions: Condition) -> Manifest:
    """The object as a watch tells it."""
    body = status(number)
    body["conditions"] = [*(condition.to_json() for condition in conditions), *body["conditions"]]
    return {"metadata": {**NODE["metadata"], "resourceVersion": str(version)}, "status": body}


async def test_what_somebody_else_wrote_is_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A patch by hand does not stay; an old event tells nothing, nor do the conditions of others."""
    monkeypatch.setattr(publishing, "INTERVAL_SECONDS", 0.01)
    cluster = Cluster()
    other = Condition(type="ConfigAssigned", status="True", reason="R", last_transition_time="now")
    async with running(cluster) as publisher:
        publisher.see(NODE)
        publisher.offer(status(1), urgent=True)
        await cluster.next()
        for quiet in (seen(10, 7), seen(11, 1), seen(12, 1, other)):
            publisher.see(quiet)
            await asyncio.sleep(0.03)
        assert cluster.applied.empty()
        publisher.see(seen(13, 7, other))
        assert (await cluster.next())["status"]["number"] == 1


async def test_who_writes_again_and_again_is_contradicted_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two agents of one node by mistake are no storm of writes; what is new goes out all the same."""
    monkeypatch.setattr(publishing, "INTERVAL_SECONDS", 0.01)
    cluster = Cluster()
    async with running(cluster) as publisher:
        publisher._correcting = Backoff(first=0.02, most=1000)
        publisher.see(NODE)
        publisher.offer(status(1), urgent=True)
        await cluster.next()
        for _ in range(20):
            publisher.see(seen(cluster.version + 1, 7))
            await asyncio.sleep(0.02)
        assert 1 <= cluster.applied.qsize() <= 6
        publisher.offer(status(2), urgent=True)

        while (await cluster.next())["status"]["number"] != 2:
            pass
