"""Which of 5,000 nodes take a pod: the pure part of the extender's filter, 20,000 pods placed. By CPU, without a protocol."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator, Mapping, Sequence
from random import Random

from bench.figures import Figure
from gpushare.placement.fitting import fit
from gpushare.placement.index import FitIndex
from gpushare.placement.shapes import PodRequest
from support.placements import alike, hami, request_of

NODES, GPUS, PODS, MEMORY = 5000, 8, 20_000, 40_960
CALLS = 200
MIXTURE = [(memory, cores) for memory in (1000, 2000, 3000, 5000, 8000, 12000, 20000) for cores in (0, 10, 20, 30, 50)]


def measure() -> list[Figure]:
    """A cluster of one kind of pod, and one of thirty-five kinds in no order, where hardly two nodes look the same."""
    one = request_of(hami(gpus=1, mem=3000, cores=30))
    many = [request_of(hami(gpus=1, mem=memory, cores=cores)) for memory, cores in MIXTURE]
    # First, as the figure for memory is the most that the process ever had.
    before = _resident()
    mixed = _fill(many)
    grown = _resident() - before
    return [
        *_measure("one shape of pod", _fill([one]), [one], target=5),
        *_measure("35 shapes at random", mixed, many, target=5),
        Figure(name="pure filter, memory of nodes and pods", unit="MiB", values=(grown,), target=100),
    ]


def _measure(name: str, index: FitIndex, requests: Sequence[PodRequest], target: float) -> Iterator[Figure]:
    names = [node.name for node in index]
    first = [_ask(index, request, names)[0] for request in requests]
    asked, reserved = [], []
    for number in range(CALLS):
        request = requests[number % len(requests)]
        milliseconds, scores = _ask(index, request, names)
        asked.append(milliseconds)
        reserved.append(_reserve(index, request, f"new-{number}", scores))
    yield Figure(name=f"pure filter, {NODES:,} nodes x {GPUS}, {name}", unit="ms", values=tuple(asked), target=target)
    yield Figure(name=f"pure filter, {name}, asked for the first time", unit="ms", values=tuple(first))
    yield Figure(name=f"pure reservation, {name}", unit="ms", values=tuple(reserved))


def _reserve(index: FitIndex, request: PodRequest, uid: str, scores: Mapping[str, float]) -> float:
    begin = time.process_time()
    best = max(scores, key=scores.__getitem__)
    node, found = index.get(best), index.fit(best, request)
    assert node is not None
    assert found is not None
    index.put(node.with_pod(uid, found.holding))
    return 1000 * (time.process_time() - begin)


def _ask(index: FitIndex, request: PodRequest, names: Sequence[str]) -> tuple[float, dict[str, float]]:
    begin = time.process_time()
    answer = index.find(request, names)
    return 1000 * (time.process_time() - begin), answer.scores


def _fill(requests: Sequence[PodRequest]) -> FitIndex:
    random, index = Random(1), FitIndex()
    nodes = [alike(GPUS, MEMORY, name=f"node-{number:05d}") for number in range(NODES)]
    for number in range(PODS):
        place = number % NODES
        found = fit(nodes[place], random.choice(requests))
        nodes[place] = nodes[place].with_pod(f"uid-{number}", found.holding)
    for node in nodes:
        index.put(node)
    return index


def _resident() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
