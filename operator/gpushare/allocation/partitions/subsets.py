"""Sets of positions as bit masks, and the scores of all sets of a size at once. Used by every way of searching."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from math import comb
from operator import add

from gpushare.allocation.topology import Scores


def mask_of(positions: Iterable[int], count: int) -> int:
    """The mask of some of `count` positions."""
    return sum(1 << (count - 1 - position) for position in positions)


def positions_of(mask: int, count: int) -> tuple[int, ...]:
    """The positions of a mask, ascending."""
    positions = []
    while mask:
        bits = mask.bit_length()
        positions.append(count - bits)
        mask ^= 1 << (bits - 1)
    return tuple(positions)


def count_up_to(count: int, size: int) -> int:
    """How many sets of at most that size there are: the work of listing them."""
    return sum(comb(count, smaller) for smaller in range(size + 1))


@lru_cache(maxsize=16)
def masks_of_size(count: int, size: int) -> Sequence[int]:
    """All sets of a size, first to last, as `itertools.combinations` gives their positions."""
    masks: list[list[int]] = [[0], *([] for _ in range(size))]
    for bit in (1 << number for number in range(count)):
        for smaller in range(size, 0, -1):
            masks[smaller] += [mask | bit for mask in masks[smaller - 1]]
    return masks[size][::-1]


def list_scores(scores: Scores, prices: Sequence[int], sizes: Collection[int]) -> list[list[int]]:
    """For each size, the scores of all its sets in the order of `masks_of_size`, less the prices of their devices.

    Device by device, as `masks_of_size`: a set gains what the new device scores with its members, which is listed likewise.
    """
    largest = max(sizes)
    listed: list[list[int]] = [[0], *([] for _ in range(largest))]
    for first in reversed(range(len(scores))):
        row = scores[first]
        gains: list[list[int]] = [[-prices[first]], *([] for _ in range(largest - 1))]
        for member in range(len(scores) - 1, first, -1):
            score = row[member]
            for smaller in range(min(len(scores) - member, largest - 1), 0, -1):
                gains[smaller] += [gain + score for gain in gains[smaller - 1]]
        for smaller in range(min(len(scores) - first, largest), 0, -1):
            listed[smaller] += map(add, listed[smaller - 1], gains[smaller - 1])
    return [listed[size][::-1] for size in sizes]


@lru_cache(maxsize=16)
def list_all_scores(scores: Scores) -> Sequence[int]:
    """The scores of all sets whatsoever, by mask. For few devices: there are 2 to the power of their number."""
    listed = [0]
    for first in reversed(range(len(scores))):
        row = scores[first]
        gains = [0]
        for member in range(len(scores) - 1, first, -1):
            score = row[member]
            gains += [gain + score for gain in gains]
        listed += map(add, listed[:], gains)
    return listed
