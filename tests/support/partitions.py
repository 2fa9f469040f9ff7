"""What the best-effort policy must answer: straight from the contract, twice, by ways that have nothing in common with ours.

`by_hand` writes down every partition with its padding, as the contract says it; `by_tables` is the textbook's dynamic programme
over subsets, for more devices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations

PADDING = -1
BITS = [1 << number for number in range(32)]
Scores = Sequence[Sequence[int]]


def score_of(scores: Scores, members: Sequence[int]) -> int:
    return sum(scores[one][two] for one, two in combinations(members, 2) if PADDING not in (one, two))


def partitions(places: Sequence[int], size: int) -> Iterator[list[tuple[int, ...]]]:
    """Sets of `size` in canonical order: the first place that is left opens a set, its companions go in order, padding last."""
    if not places:
        yield []
        return
    first, *others = places
    for companions in combinations(range(len(others)), size - 1):
        opened = (first, *(others[number] for number in companions))
        left = [place for number, place in enumerate(others) if number not in companions]
        # All padding sits in one set.
        if PADDING in opened and PADDING in left:
            continue
        for remaining in partitions(left, size):
            yield [opened, *remaining]


def by_hand(scores: Scores, available: Sequence[int], required: Sequence[int], size: int) -> tuple[int, ...]:
    """The answer for available devices in ascending order."""
    if size <= 0 or len(available) < size or len(required) > size or not set(required) <= set(available):
        return ()
    best: tuple[int, list[tuple[int, ...]]] | None = None
    for partition in partitions([*available, *[PADDING] * (-len(available) % size)], size):
        full = [members for members in partition if PADDING not in members and set(required) <= set(members)]
        total = sum(score_of(scores, members) for members in partition)
        if full and (best is None or total > best[0]):
            best = total, full
    assert best is not None
    chosen = best[1][0]
    for members in best[1]:
        if score_of(scores, members) > score_of(scores, chosen):
            chosen = members
    return chosen


def openings(left: Sequence[int], size: int) -> list[tuple[int, ...]]:
    """Companions that the first of some devices can have, in canonical order."""
    sizes = {size, len(left) % size} - {0} if len(left) >= size else {len(left)}
    found = [chosen for each in sizes for chosen in combinations(left[1:], each - 1)]
    if len(sizes) > 1:
        # Padding comes last, so that (0, 1) follows (0, 1, 2).
        found.sort(key=lambda members: (*members, *[len(BITS)] * (size - len(members))))
    return found


def by_tables(scores: Scores, required: Sequence[int], size: int) -> tuple[int, ...]:
    """The answer for all devices of the matrix, of which more than `size`, and fewer than `size` required."""
    must = sum(BITS[device] for device in required)

    @cache
    def members_of(mask: int) -> tuple[int, ...]:
        return tuple(device for device in range(len(scores)) if mask & BITS[device])

    @cache
    def score(mask: int) -> int:
        return score_of(scores, members_of(mask))

    @cache
    def best(left: int) -> tuple[int, tuple[int, ...]]:
        """The highest total of what is left, and the first partition that has it."""
        found: tuple[int, tuple[int, ...]] = (-1 if left else 0, ())
        first = BITS[members_of(left)[0]] if left else 0
        for companions in openings(members_of(left), size) if left else ():
            opened = first | sum(map(BITS.__getitem__, companions))
            if must & opened and (must & opened != must or len(companions) < size - 1):
                continue
            total, remaining = best(left ^ opened)
            if total >= 0 and score(opened) + total > found[0]:
                found = score(opened) + total, (opened, *remaining)
        return found

    full = [mask for mask in best(sum(BITS[: len(scores)]))[1] if mask.bit_count() == size and mask & must == must]
    return members_of(max(full, key=score))
