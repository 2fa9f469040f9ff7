"""Finding a ConfigMap in the wrong namespace."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

import pytest

from gpushare.controller import searching
from gpushare.controller.searching import ConfigMapSearch
from gpushare.domain import manifests
from gpushare.domain.manifests import ObjectKey
from support.memory_cluster import MemoryCluster

LOG = logging.getLogger("test")


def key(namespace: str) -> ObjectKey:
    return ObjectKey(manifests.CONFIG_MAP, "sharing", namespace)


class Searching:
    """A search over a cluster in memory, and how often it told of something."""

    def __init__(self) -> None:
        self.cluster = MemoryCluster()
        self.told = 0
        self._changed = asyncio.Event()
        self.search = ConfigMapSearch(self.cluster, "gpu-operator", self._tell, LOG)

    def _tell(self) -> None:
        self.told += 1
        self._changed.set()

    async def create(self, namespace: str) -> None:
        metadata = {"name": "sharing", "namespace": namespace}
        await self.cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})

    async def until(self, *namespaces: str) -> None:
        while self.search.found != set(map(key, namespaces)):
            self._changed.clear()
            await self._changed.wait()


@pytest.fixture
async def searching_() -> AsyncIterator[Searching]:
    searching = Searching()
    task = asyncio.create_task(searching.search.run())
    yield searching
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_found_at_once(searching_: Searching) -> None:
    """What is there already is known before whoever asks goes on, and nobody is told besides."""
    await searching_.create("default")
    await searching_.create("other")

    await searching_.search.look_for("sharing")

    assert searching_.search.found == {key("default"), key("other")}
    assert searching_.told == 0


async def test_found_later(searching_: Searching) -> None:
    """What is created or deleted afterwards is told as soon as it happens."""
    await searching_.search.look_for("sharing")
    assert searching_.search.found == frozenset()

    await searching_.create("default")
    await searching_.until("default")
    await searching_.create("other")
    await searching_.until("default", "other")
    await searching_.cluster.delete(manifests.CONFIG_MAP, "sharing", "default")
    await searching_.until("other")

    assert searching_.told == 3


async def test_own_namespace_is_no_other(searching_: Searching) -> None:
    """What is where it belongs is nowhere else, whether it was there before or comes later."""
    await searching_.create("gpu-operator")
    await searching_.search.look_for("sharing")
    assert searching_.search.found == frozenset()

    await searching_.cluster.delete(manifests.CONFIG_MAP, "sharing", "gpu-operator")
    await searching_.create("gpu-operator")
    await searching_.create("default")
    await searching_.until("default")

    assert searching_.told == 1


async def test_not_missing_any_more(searching_: Searching) -> None:
    """When nothing is missing nothing is looked for, and what was found means nothing."""
    await searching_.create("default")
    await searching_.search.look_for("sharing")

    await searching_.search.look_for("")
    await searching_.create("other")

    assert searching_.search.found == frozenset()
    assert searching_.told == 0


async def test_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the server says nothing a pass goes on after a while, and the next one does not wait again."""
    monkeypatch.setattr(searching, "_FIRST_SECONDS", 0.01)
    silent = Searching()  # not running

    await silent.search.look_for("sharing")
    async with asyncio.timeout(0):
        await silent.search.look_for("sharing")

    assert silent.search.found == frozenset()
