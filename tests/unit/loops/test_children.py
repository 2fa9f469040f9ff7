"""Objects by who controls them."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from gpushare.domain import manifests
from gpushare.kube.watching import Synced
from gpushare.sandbox.loops import owners
from gpushare.sandbox.loops.caches import Cache
from gpushare.sandbox.loops.children import Children
from support import workload_objects as objects

SETS = (objects.workload("ReplicaSet", "one"), objects.workload("ReplicaSet", "two"))
NAMES = st.sampled_from(["a", "b", "c"])


def names(pods) -> set[str]:
    return {pod["metadata"]["name"] for pod in pods}


@given(st.lists(st.dictionaries(NAMES, st.sampled_from([*SETS, None]))))
def test_each_owner_sees_its_own(lists):
    """Whatever comes, goes and changes hands, each owner finds what looking at everything would find."""
    cache = Cache(manifests.POD)
    children = Children(cache)
    for shown in lists:
        cache.see(Synced(tuple(objects.pod(name, owner=owner) for name, owner in shown.items())))
        free = names(pod for pod in cache if owners.is_orphan(pod))
        for owner in SETS:
            own = names(pod for pod in cache if owners.is_controlled_by(pod, owner))
            assert names(children.of(owner)) == own
            assert names(children.candidates(owner)) == own | free


def test_other_namespaces_are_no_candidates():
    """An owner takes nothing from another namespace, whoever is said to control it there."""
    cache = Cache(manifests.POD)
    children = Children(cache)
    pods = [objects.pod("own", owner=SETS[0]), objects.pod("free")]
    cache.see(Synced(tuple({**pod, "metadata": {**pod["metadata"], "namespace": "elsewhere"}} for pod in pods)))

    assert children.candidates(SETS[0]) == []
