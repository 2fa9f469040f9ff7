"""Good partitions, quickly: sets that grow by the device with most links to them, then devices that change places.

Where searching finds nothing better, one of these is the answer; what it is compared with is in `bounding`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from operator import add

from gpushare.allocation.partitions import subsets
from gpushare.allocation.topology import Scores

_SCATTER = 0x9E3779B1
"""Multiples of it, cut to some bits, are spread without a pattern: an order for each try, and the same ones each time."""


@dataclass(frozen=True, slots=True)
class Found:
    """A partition, and what it is good for."""

    total: int
    masks: Sequence[int]


def improve(scores: Scores, size: int, required: int, tries: int, enough: int) -> Found:
    """The best of some tries; stops at a total of `enough`.

    Exchanging two devices gains nothing any more in what is found: where nothing is left over, its total is at least the mean of
    all partitions.
    """
    count = len(scores)
    must = subsets.positions_of(required, count)
    movable = [position for position in range(count) if position not in must]
    best = Found(-1, ())
    for order in _orders(count, tries):
        groups = _grow(scores, size, must, [position for position in order if position not in must])
        total, groups = _exchange(scores, groups, movable)
        if total > best.total:
            best = Found(total, [subsets.mask_of(group, count) for group in groups])
        if total >= enough:
            break
    return best


def _orders(count: int, tries: int) -> Iterator[Sequence[int]]:
    yield range(count)
    yield range(count - 1, -1, -1)
    for number in range(2, tries):
        yield sorted(range(count), key=lambda position: (position + 1) * (number + count) * _SCATTER & 0xFFFFFFFF)


def _grow(scores: Scores, size: int, must: Sequence[int], left: list[int]) -> list[list[int]]:
    """Sets that each open with the next device of `left`, the first with what is required; the rest comes last."""
    sets, rest = divmod(len(scores), size)
    groups: list[list[int]] = []
    for wanted in [size] * sets + [rest] * bool(rest):
        group = list(must) if must and not groups else [left.pop(0)]
        gains = [0] * len(scores)
        for member in group:
            gains = list(map(add, gains, scores[member]))
        while len(group) < wanted:
            member = max(left, key=gains.__getitem__)
            left.remove(member)
            group.append(member)
            gains = list(map(add, gains, scores[member]))
        groups.append(group)
    return groups


def _exchange(scores: Scores, groups: list[list[int]], movable: Sequence[int]) -> tuple[int, list[list[int]]]:
    """Exchanges devices of different sets as long as that gains something."""
    home = {member: number for number, group in enumerate(groups) for member in group}
    # Of each device with each set.
    links = [[sum(map(row.__getitem__, group)) for group in groups] for row in scores]
    is_moving = True
    while is_moving:
        is_moving = False
        for one, two in combinations(movable, 2):
            here, there = home[one], home[two]
            ones, twos = links[one], links[two]
            # They lose what they have at home, and neither meets the other in its new one.
            if ones[there] + twos[here] - ones[here] - twos[there] > 2 * scores[one][two]:
                home[one], home[two] = there, here
                _move(links, scores, (one, here), (two, there))
                is_moving = True
    total = sum(links[member][number] for member, number in home.items()) // 2
    return total, [[member for member, number in home.items() if number == each] for each in range(len(groups))]


def _move(links: list[list[int]], scores: Scores, one: tuple[int, int], two: tuple[int, int]) -> None:
    (first, here), (second, there) = one, two
    for row, score, other in zip(links, scores[first], scores[second], strict=True):
        change = score - other
        row[here] -= change
        row[there] += change
