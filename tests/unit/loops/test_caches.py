"""Watch caches and the own writes put into them."""

from __future__ import annotations

import asyncio
import logging

from gpushare.domain import manifests
from gpushare.kube.cluster import EventType, WatchEvent
from gpushare.kube.watching import Changed, Synced
from gpushare.sandbox.loops import caches as caching
from gpushare.sandbox.loops.caches import Cache, Caches
from support import workload_objects as objects
from support.memory_cluster import MemoryCluster


def changed(kind: str, manifest) -> Changed:
    return Changed(WatchEvent(EventType(kind), manifest))


def versioned(manifest, version: int):
    return {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": str(version)}}


def heard(cache: Cache) -> list[tuple[str | None, str | None]]:
    """Versions before and after each change that listeners are told of."""
    told: list[tuple[str | None, str | None]] = []

    def version(manifest):
        return manifest and manifest["metadata"]["resourceVersion"]

    cache.listen(lambda before, after: told.append((version(before), version(after))))
    return told


def test_changes():
    """A cache shows what the watch shows, and tells about it."""
    cache, node = Cache(manifests.NODE), objects.node("gpu01")
    told = heard(cache)
    cache.see(Synced((versioned(node, 1),)))
    cache.see(changed("MODIFIED", versioned(node, 2)))
    cache.see(changed("DELETED", versioned(node, 3)))

    assert cache.synced.is_set()
    assert told == [(None, "1"), ("1", "2"), ("2", None)]
    assert list(cache) == []


def test_list_after_a_gap():
    """What is not in a new list is gone."""
    cache = Cache(manifests.NODE)
    old, stays = objects.node("old"), objects.node("stays")
    cache.see(Synced((old, stays)))
    told = heard(cache)
    cache.see(Synced((stays,)))

    assert [node["metadata"]["name"] for node in cache] == ["stays"]
    assert told == [(old["metadata"]["resourceVersion"], None)]


def test_own_write_first():
    """An own write that the watch brings later is told once, and an older event changes nothing back."""
    cache, pod = Cache(manifests.POD), objects.pod("web")
    cache.see(Synced((versioned(pod, 1),)))
    told = heard(cache)
    cache.put(versioned(pod, 5))
    cache.see(changed("MODIFIED", versioned(pod, 3)))
    cache.see(changed("MODIFIED", versioned(pod, 5)))

    assert told == [("1", "5")]


def test_own_write_late():
    """The answer to a create that comes after the object is gone again brings no ghost."""
    cache, pod = Cache(manifests.POD), objects.pod("web")
    cache.see(changed("ADDED", pod))
    cache.see(changed("DELETED", versioned(pod, 1000)))
    cache.put(pod)

    assert list(cache) == []


def test_successor():
    """The end of an object does not take another one of its name along."""
    cache, first, second = Cache(manifests.POD), objects.pod("web"), objects.pod("web")
    cache.see(changed("ADDED", first))
    cache.see(changed("ADDED", second))
    cache.see(changed("DELETED", first))

    assert cache.get(("default", "web")) == second


def test_mark_terminating():
    """An accepted delete shows at once, until the watch has the last word."""
    cache, pod = Cache(manifests.POD), objects.pod("web")
    cache.put(pod)
    cache.mark_terminating(pod)
    found = cache.get(("default", "web"))

    assert found is not None
    assert caching.is_terminating(found)
    assert not caching.is_terminating(pod)


async def test_follow():
    """All kinds are followed side by side, and `wait` returns when all are listed."""
    cluster = MemoryCluster()
    await cluster.create(objects.node("gpu01"))
    caches = Caches(cluster, logging.getLogger(__name__))
    nodes, pods = caches.of(manifests.NODE), caches.of(manifests.POD)
    came = asyncio.Event()
    pods.listen(lambda _before, _after: came.set())
    following = asyncio.create_task(caches.run())
    await caches.wait()
    await cluster.create(objects.pod("web"))
    await came.wait()
    following.cancel()

    assert [node["metadata"]["name"] for node in nodes] == ["gpu01"]
    assert caches.of(manifests.POD) is pods
