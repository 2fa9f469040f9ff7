"""Score matrices of machines that exist, and of many that do not."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

FIXTURES: Mapping[str, Any] = json.loads((Path(__file__).parent / "data" / "allocator.json").read_text())
"""Topologies and tables of go-gpuallocator's own tests."""
Matrix = list[list[int]]


def known(name: str) -> Matrix:
    """`dgx1-pascal`, `dgx1-volta` or `rtx8000x4`."""
    matrix: Matrix = FIXTURES["topologies"][name]["pair_scores"]
    return matrix


def matrix_of(count: int, score: Callable[[int, int], int]) -> Matrix:
    """Symmetric scores, each pair asked for once."""
    scores = [[0] * count for _ in range(count)]
    for one in range(count):
        for two in range(one):
            scores[one][two] = scores[two][one] = score(two, one)
    return scores


def tree(*levels: tuple[int, int], nvlinks: int = 0) -> Callable[[int, int], int]:
    """A PCI tree: (number of GPUs together, score), the closest first; GPUs that are nowhere together score 10."""

    def score(one: int, two: int) -> int:
        return next((each for together, each in levels if one // together == two // together), 10) + 100 * nvlinks

    return score


def bridged(
    base: Callable[[int, int], int], pairs: Sequence[tuple[int, int]], nvlinks: int
) -> Callable[[int, int], int]:
    """The same with NVLink bridges."""
    bridges = {frozenset(pair) for pair in pairs}
    return lambda one, two: base(one, two) + 100 * nvlinks * (frozenset((one, two)) in bridges)


def machines() -> dict[str, Matrix]:
    """By name: those that people have."""
    volta = known("dgx1-volta")
    dgx2 = tree((2, 50), (4, 40), (8, 20))
    return {
        "DGX-1": volta,
        "PCIe tree": matrix_of(16, dgx2),
        "DGX-2": matrix_of(16, tree((2, 50), (4, 40), (8, 20), nvlinks=6)),
        "HGX with NVSwitch": matrix_of(8, tree((2, 50), (4, 20), nvlinks=18)),
        "PCIe with bridges": matrix_of(
            16, bridged(tree((2, 50), (8, 20)), [(n, n + 2) for n in (0, 1, 4, 5, 8, 9)], 4)
        ),
        "two DGX-1": matrix_of(16, lambda one, two: volta[one % 8][two % 8] if one // 8 == two // 8 else 10),
    }


def at_random(count: int, random: Random) -> Matrix:
    """One of several kinds of nonsense, some with many equal scores and some with none."""
    kind = random.randrange(6)
    if kind == 0:
        return matrix_of(count, lambda *_: random.randint(1, 6) * 10)
    if kind == 1:
        return matrix_of(
            count, lambda *_: random.randint(1, 6) * 10 + 100 * random.choice((0, 0, 0, 1, 2, 4, 6, 12, 18))
        )
    if kind == 2:
        return matrix_of(count, lambda *_: random.choice((0, 0, 1)))
    if kind == 3:
        order = random.sample(range(count), count)
        closeness = tree((random.choice((2, 3)), 50), (random.choice((4, 5, 7)), 20))
        return matrix_of(count, lambda one, two: closeness(order[one], order[two]))
    if kind == 4:
        order = random.sample(range(count), count)
        pairs = [(order[2 * n], order[2 * n + 1]) for n in range(random.randint(1, count // 2))]
        return matrix_of(count, bridged(tree((4, 20)), pairs, random.choice((2, 4, 12))))
    return matrix_of(count, lambda *_: int(random.paretovariate(0.7)) % 50_000)
