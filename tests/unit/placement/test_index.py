"""Many nodes asked at once, and what each of them answers."""

from __future__ import annotations

import gc
from dataclasses import replace

from gpushare.allocation import Topology
from gpushare.placement.gpus import Use
from gpushare.placement.index import FitIndex
from gpushare.placement.quotas import Quota
from support.placements import alike, device, hami, node_of, request_of

SMALL = request_of(hami(gpus=1, mem=100))


def index_of(*counts: int) -> FitIndex:
    index = FitIndex()
    for number, count in enumerate(counts):
        index.put(alike(count, name=f"node-{number}"))
    return index


def names_of(index: FitIndex) -> list[str]:
    return [node.name for node in index]


def test_find() -> None:
    """Those that fit have a score, the others a reason; who is not known says so."""
    index = index_of(1, 2)
    index.put(node_of([device(0, 10)], name="tiny"))

    answer = index.find(SMALL, ["node-0", "tiny", "elsewhere", "node-1"])
    assert list(answer.scores) == ["node-0", "node-1"]
    assert answer.failed == {"tiny": "1/1 CardInsufficientMemory", "elsewhere": "NodeUnknown"}


def test_find_follows_changes() -> None:
    """An answer is forgotten with the state that it was about."""
    index = index_of(1, 1)
    assert len(index.find(SMALL, names_of(index)).scores) == 2

    node = index.get("node-0")
    assert node is not None
    index.put(node.with_pod("large", {"GPU-node-0-0": Use(15360, 0, 1)}))
    assert list(index.find(SMALL, names_of(index)).scores) == ["node-1"]

    index.put(node)
    assert len(index.find(SMALL, names_of(index)).scores) == 2

    index.remove("node-0")
    index.remove("never there")
    assert index.find(SMALL, ["node-0", "node-1"]).failed == {"node-0": "NodeUnknown"}
    assert len(index) == 1


def test_uuid() -> None:
    """Nodes that look the same differ for a pod that names a GPU."""
    index = index_of(1, 1, 1)
    request = request_of(hami(gpus=1, mem=100), annotations={"nvidia.com/use-gpuuuid": "GPU-node-1-0"})

    for _ in range(2):
        answer = index.find(request, names_of(index))
        assert list(answer.scores) == ["node-1"]
        assert answer.failed["node-0"] == "1/1 CardUuidMismatch"

    node = index.get("node-1")
    assert node is not None
    index.put(node.with_pod("large", {"GPU-node-1-0": Use(15360, 0, 1)}))
    assert index.find(request, names_of(index)).scores == {}


def test_uuids_move() -> None:
    """A GPU that is put into another machine belongs to that one, also when the first forgets it later."""
    index = index_of(1, 1)
    request = request_of(hami(gpus=1, mem=100), annotations={"nvidia.com/use-gpuuuid": "GPU-node-0-0"})
    moved = alike(1, name="node-0").gpus

    index.put(replace(alike(1, name="node-1"), gpus=moved))
    index.put(node_of([device(7)], name="node-0"))
    assert list(index.find(request, names_of(index)).scores) == ["node-1"]
    index.remove("node-1")
    assert index.find(request, names_of(index)).scores == {}


def test_topology() -> None:
    """What connects GPUs is a part of what nodes look like."""
    index = FitIndex()
    for name, scores in (("near", [[0, 9, 1], [9, 0, 1], [1, 1, 0]]), ("far", [[0, 1, 9], [1, 0, 1], [9, 1, 0]])):
        index.put(replace(alike(3, name=name), topology=Topology.from_pair_scores(scores)))
    request = request_of(hami(gpus=2, mem=1), annotations={"hami.io/gpu-scheduler-policy": "topology-aware"})

    assert index.find(request, ["near", "far"]).failed == {}
    found = index.fit("far", request)
    assert found is not None
    assert found.holding.keys() == {"GPU-far-0", "GPU-far-2"}
    assert index.fit("unknown", request) is None


def test_quota() -> None:
    """What is left of a quota is asked about each time, and a percentage of smaller GPUs may still do."""
    index = FitIndex()
    index.put(alike(1, 1000, name="small"))
    index.put(alike(1, 4000, name="large"))
    request = request_of(hami(gpus=1, percent=50))

    assert set(index.find(request, ["small", "large"], Quota(memory_mib=2000)).scores) == {"small", "large"}
    assert index.find(request, ["small", "large"], Quota(memory_mib=500)).failed == {"large": "1/1 ResourceQuotaNotFit"}
    index.put(node_of([device(0, 4000), device(1, 1000)], name="mixed"))
    assert set(index.find(request, ["mixed"], Quota(memory_mib=500)).scores) == {"mixed"}


def test_answers_go_with_the_last_node_that_they_are_about() -> None:
    """Nothing is kept of looks that no node has any more, however often nodes change."""
    index = index_of(1)
    for amount in range(100):
        node = alike(1, name="node-0").with_pod("a", {"GPU-node-0-0": Use(amount, 0, 1)})
        index.put(node)
        index.find(SMALL, ["node-0"])
    gc.collect()

    assert len(index.album) == 1


def test_many_shapes() -> None:
    """Answers of one look are bounded, and right after they were thrown away."""
    index = index_of(1)
    for amount in range(1, 200):
        request = request_of(hami(gpus=1, mem=amount))
        assert list(index.find(request, ["node-0"]).scores) == ["node-0"]

    assert len(index._looks["node-0"].verdicts) <= 64
