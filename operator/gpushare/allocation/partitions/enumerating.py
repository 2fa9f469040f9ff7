"""Few devices: every partition is looked at. For 8 devices there are at most 280, for 10 at most 2,800.

All partitions of a number of devices are written down once; a search then only picks scores out of a table and adds them, by
functions of the interpreter that run over whole rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb, factorial
from operator import add, itemgetter

from gpushare.allocation.partitions import subsets
from gpushare.allocation.partitions.values import Partition, build_partition
from gpushare.allocation.topology import Scores

_NEVER = -(1 << 62)
"""The score of a set that must not be used; no sum of real ones outweighs it."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """All partitions of so many devices, first to last."""

    rows: Sequence[tuple[int, ...]]
    """The masks of each."""
    columns: Sequence[Callable[[Sequence[int]], tuple[int, ...]]]
    """The k-th one picks the k-th set of every partition out of a table of scores."""
    masks: Sequence[int]
    """Every set that occurs."""


def count_partitions(count: int, size: int) -> int:
    """How many ways there are to divide `count` devices into sets of `size` and one of what is left over."""
    sets, rest = divmod(count, size)
    same: int = factorial(size) ** sets * factorial(sets)
    return comb(count, rest) * factorial(count - rest) // same


def find_best(scores: Scores, size: int, required: int) -> Partition:
    """The first of the best partitions in which some full set holds all of `required`."""
    plan = _build_plan(len(scores), size)
    table = subsets.list_all_scores(scores)
    if required:
        table = list(table)
        for mask in plan.masks:
            shared = mask & required
            if shared and (shared != required or mask.bit_count() < size):
                table[mask] = _NEVER
    totals = list(plan.columns[0](table))
    for column in plan.columns[1:]:
        totals = list(map(add, totals, column(table)))
    # `index` gives the first of several.
    return build_partition(scores, plan.rows[totals.index(max(totals))], size, required)


@lru_cache(maxsize=64)
def _build_plan(count: int, size: int) -> _Plan:
    rows = tuple(_divide((1 << count) - 1, size))
    # The 0 at the end: an `itemgetter` of one index answers with an item rather than a tuple.
    columns = [itemgetter(*column, 0) for column in zip(*rows, strict=True)]
    return _Plan(rows, columns, sorted({mask for row in rows for mask in row}))


def _divide(open_: int, size: int) -> Iterator[tuple[int, ...]]:
    """Partitions of the devices of a mask, in order: each opens with the first device, and goes on with those that follow."""
    if not open_:
        yield ()
        return
    first = 1 << (open_.bit_length() - 1)
    others = [bit for bit in (1 << number for number in reversed(range(first.bit_length() - 1))) if bit & open_]
    rest = open_.bit_count() % size
    sizes = {size, rest} - {0} if open_.bit_count() > size else {rest or size}
    openings = sorted((first + sum(bits) for each in sizes for bits in combinations(others, each - 1)), reverse=True)
    for mask in openings:
        for remaining in _divide(open_ ^ mask, size):
            yield (mask, *remaining)
