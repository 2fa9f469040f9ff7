"""Choosing GPUs: how long the best-effort policy takes, on machines that people have and on nonsense."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from random import Random

from bench.figures import Figure
from gpushare.allocation import BestEffort, Topology
from gpushare.allocation.partitions import enumerating, solving, subsets
from support.topologies import Matrix, machines, matrix_of

COUNTS = (4, 8, 12, 16)
INSTANCES = 100
LARGE = (17, 18, 20, 24, 28, 32)
POLICY = BestEffort()
Question = tuple[Topology, Sequence[int], Sequence[int], int]


def measure() -> list[Figure]:
    """Everything that design and documentation say about the speed of the allocation library."""
    return [*_random(), *_shortcuts(), *_first(), *_machines(), *_large()]


def random_matrix(count: int, seed: int) -> Matrix:
    """Any place in the PCI tree, and up to 18 NVLinks, for each pair: nothing is alike, which is what takes longest."""
    random = Random(seed)
    places = matrix_of(count, lambda *_: 10 * random.randint(1, 6))
    nvlinks = matrix_of(count, lambda *_: 100 * random.choice((0, 0, 0, 1, 2, 4, 6, 12, 18)))
    return matrix_of(count, lambda one, two: places[one][two] + nvlinks[one][two])


def _random() -> Iterator[Figure]:
    """Each size on a hundred random instances, every other one with a GPU that must be in."""
    eight = _times(_questions(8, range(2, 8)))
    yield Figure(name="8 GPUs at random, sizes 2 to 7", unit="ms", values=eight, target=0.1)
    everything: list[float] = []
    for size in range(2, 9):
        values = _times(_questions(16, [size]))
        everything += values if size < 8 else ()
        yield Figure(name=f"16 GPUs at random, size {size}", unit="ms", values=values, target=15 if size < 8 else None)
    whole = Figure(name="", unit="ms", values=tuple(everything))
    yield Figure(name="16 GPUs at random, sizes 2 to 7, p50", unit="ms", values=(whole.at(50),), target=15)
    yield Figure(name="16 GPUs at random, sizes 2 to 7, p99", unit="ms", values=(whole.at(99),), target=60)


def _shortcuts() -> Iterator[Figure]:
    """Questions that need no search, and the same question once more, in groups of a thousand."""
    topology = Topology.from_pair_scores(random_matrix(16, 0))
    available = tuple(range(16))
    for name, size, target in (("size 1", 1, 5), ("size n", 16, 5), ("size 4, asked before", 4, None)):
        values = []
        for _ in range(INSTANCES):
            begin = time.perf_counter()
            for _ in range(1000):
                POLICY.choose(topology, available, (), size)
            values.append(1000 * (time.perf_counter() - begin))
        yield Figure(name=f"16 GPUs, {name}", unit="us", values=tuple(values), target=target)


def _first() -> Iterator[Figure]:
    """What the first question of a process costs more than the next one of its kind, from the matrix on."""
    for count in (8, 16):
        extra = []
        for number in range(2, count):
            matrix = random_matrix(count, number)
            for cached in (enumerating._build_plan, subsets.masks_of_size, subsets.list_all_scores, solving.divide):
                cached.cache_clear()
            begin = time.perf_counter()
            topology = Topology.from_pair_scores(matrix)
            POLICY.choose(topology, range(count), (), number)
            cold = time.perf_counter() - begin
            (warm,) = _times([(topology, range(count), (), number)])
            extra.append(1000 * cold - warm)
        yield Figure(
            name=f"{count} GPUs, first question, beyond a later one", unit="ms", values=tuple(extra), target=10
        )


def _machines() -> Iterator[Figure]:
    """Machines with all or some of their GPUs available, all sizes, with and without a GPU that must be in."""
    for name, matrix in machines().items():
        topology = Topology.from_pair_scores(matrix)
        for count in (count for count in COUNTS if count <= len(matrix)):
            random = Random(count)
            questions: list[Question] = []
            for size in range(1, count + 1):
                for number in range(10):
                    available = sorted(random.sample(range(len(matrix)), count))
                    questions.append((topology, available, available[:1] * (number % 2), size))
            yield Figure(name=f"{name}, {count} available, all sizes", unit="ms", values=_times(questions))


def _large() -> Iterator[Figure]:
    """More GPUs than any answer is promised to be exact for."""
    for count in LARGE:
        questions = list(_questions(count, range(2, count), instances=2))
        values = _times(questions)
        exact = sum(POLICY.divide(*question).is_exact for question in questions)  # type: ignore[union-attr]
        name = f"{count} GPUs at random, all sizes, {100 * exact // len(questions)} % proven best"
        yield Figure(name=name, unit="ms", values=values)
        yield Figure(name=f"{count} GPUs at random, the slowest", unit="ms", values=(max(values),), target=100)


def _questions(count: int, sizes: Iterable[int], instances: int = INSTANCES) -> Iterator[Question]:
    for size in sizes:
        for number in range(instances):
            topology = Topology.from_pair_scores(random_matrix(count, 1000 * size + number))
            yield topology, range(count), (number % count,) * (number % 2), size


def _times(questions: Iterable[Question]) -> tuple[float, ...]:
    """Of each question as if it were asked for the first time; the tables that belong to no topology are there."""
    values = []
    seen: set[tuple[int, int]] = set()
    for topology, available, required, size in questions:
        if (len(available), size) not in seen:
            seen.add((len(available), size))
            POLICY.choose(topology, available, required, size)
        solving.divide.cache_clear()
        begin = time.perf_counter()
        POLICY.choose(topology, available, required, size)
        values.append(1000 * (time.perf_counter() - begin))
    return tuple(values)
