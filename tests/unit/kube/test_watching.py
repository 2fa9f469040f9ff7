"""Following a kind through everything that can happen to a watch."""

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from gpushare.domain import manifests
from gpushare.errors import ClusterRefused, ClusterUnavailable, Expired
from gpushare.kube.cluster import EventType, ObjectList, WatchEvent
from gpushare.kube.watching import Changed, Synced, follow

LOG = logging.getLogger("test")

pytestmark = pytest.mark.usefixtures("skipped_time")


def seen(name: str, version: str) -> dict:
    return {"metadata": {"name": name, "resourceVersion": version}}


def event(type_: EventType, name: str, version: str) -> WatchEvent:
    return WatchEvent(type_, seen(name, version))


class Scripted:
    """A cluster that lists and watches as told; a watch that is not told anything more waits for ever."""

    def __init__(self, lists: list, watches: list) -> None:
        self.lists = lists
        self.watches = watches
        self.asked: list[str] = []
        self.open = 0

    async def list(self, *_where, **_selectors):
        self.asked.append("list")
        answer = self.lists.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def watch(self, *_where, resource_version, **_selectors) -> AsyncIterator:
        self.asked.append(resource_version)
        self.open += 1
        try:
            for step in self.watches.pop(0) if self.watches else [None]:
                if step is None:
                    await asyncio.Event().wait()
                if isinstance(step, Exception):
                    raise step
                yield step
        finally:
            self.open -= 1


async def changes(cluster: Scripted, count: int) -> list:
    found = []
    stream = follow(cluster, manifests.NODE, log=LOG)
    async for change in stream:
        found.append(change)
        if len(found) == count:
            break
    await stream.aclose()
    assert cluster.open == 0
    return found


A = ObjectList((seen("a", "1"),), "1")
B = ObjectList((seen("b", "9"),), "9")
SYNCED_A, SYNCED_B = Synced(A.items), Synced(B.items)
ADDED = event(EventType.ADDED, "c", "2")


@pytest.mark.parametrize(
    ("lists", "watches", "expected", "asked"),
    [
        pytest.param([A], [[ADDED]], [SYNCED_A, Changed(ADDED)], ["list", "1"], id="list, then changes"),
        pytest.param(
            [A],
            [[ADDED], [event(EventType.DELETED, "a", "3")]],
            [SYNCED_A, Changed(ADDED), Changed(event(EventType.DELETED, "a", "3"))],
            ["list", "1", "2"],
            id="a watch that ends is taken up where it ended",
        ),
        pytest.param(
            [A],
            [[event(EventType.BOOKMARK, "", "7")], [ADDED]],
            [SYNCED_A, Changed(ADDED)],
            ["list", "1", "7"],
            id="bookmarks move the start and are not told",
        ),
        pytest.param(
            [A, B],
            [[ADDED, Expired("old")]],
            [SYNCED_A, Changed(ADDED), SYNCED_B],
            ["list", "1", "list"],
            id="too old: list again",
        ),
        pytest.param(
            [A],
            [[ADDED, ClusterUnavailable("gone")], [ADDED]],
            [SYNCED_A, Changed(ADDED), Changed(ADDED)],
            ["list", "1", "2"],
            id="a broken stream is taken up",
        ),
        pytest.param(
            [ClusterUnavailable("gone"), ClusterRefused("not yet", code=403), A],
            [],
            [SYNCED_A],
            ["list", "list", "list"],
            id="no server at the start, then no permissions yet",
        ),
    ],
)
async def test_follow(lists: list, watches: list, expected: list, asked: list[str]) -> None:
    """Each thing that can happen, and what the reader sees of it."""
    cluster = Scripted(lists, watches)

    assert expected == await changes(cluster, len(expected))
    assert asked == cluster.asked


async def test_trouble_that_lasts_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """However often it is met until all is well again."""
    away = ClusterUnavailable("away")
    await changes(Scripted([away, away, away, A], [[ADDED, away]]), 2)
    assert caplog.messages == ["watch interrupted"]

    await changes(Scripted([away, A], [[ADDED, away], [ADDED]]), 3)
    assert caplog.messages == ["watch interrupted"] * 3


async def test_what_nobody_needs_does_not_come() -> None:
    """A picture of thousands of objects holds little of each, and the version goes on with those that are left out."""

    def trim(found: dict) -> dict | None:
        return {"name": found["metadata"]["name"]} if found["metadata"]["name"] != "c" else None

    cluster = Scripted([A], [[ADDED, event(EventType.MODIFIED, "a", "3")], [None]])
    stream = follow(cluster, manifests.NODE, trim=trim, log=LOG)
    assert await anext(stream) == Synced(A.items)  # `list` trims by itself
    assert await anext(stream) == Changed(WatchEvent(EventType.MODIFIED, {"name": "a"}))
    await stream.aclose()
