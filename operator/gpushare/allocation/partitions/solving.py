"""Chooses how to search for the best partition. Called by the best-effort policy.

Up to `EXACT` devices the answer is always the best one. Above, it is as far as listing all sets and a fixed number of steps
allow; else it is the best of some tries, with a bound that says how much better another one could be at most.
"""

from __future__ import annotations

from functools import lru_cache

from gpushare.allocation.partitions import bounding, covering, enumerating, halving, improving, subsets
from gpushare.allocation.partitions.values import Partition, build_partition
from gpushare.allocation.topology import Scores

EXACT = 16
_FEW = 10
_MOST_PARTITIONS = 1000
"""Of so few devices, so many partitions are looked at one by one."""
_MOST_SETS = 120_000
"""So many are listed above `EXACT` devices: some tens of milliseconds."""
_MOST_STEPS = 60_000
"""Of a search above `EXACT` devices: some tens of milliseconds."""
_TRIES = 8
_TRIES_ALONE = 60
"""Where nothing but tries can be had."""


@lru_cache(maxsize=256)
def divide(scores: Scores, size: int, required: tuple[int, ...]) -> Partition:
    """The first of the best partitions into sets of `size`, one of which holds all required positions.

    For sizes from 2 to one less than there are devices, and fewer required than that.
    """
    count = len(scores)
    must = subsets.mask_of(required, count)
    if count <= _FEW and enumerating.count_partitions(count, size) <= _MOST_PARTITIONS:
        return enumerating.find_best(scores, size, must)
    smaller = min(size, count - size)
    if count > EXACT and subsets.count_up_to(count, smaller) > _MOST_SETS:
        return _try(scores, size, must)
    if 2 * size >= count:
        return halving.find_best(scores, size, must)
    return _search(scores, size, must)


def _try(scores: Scores, size: int, must: int) -> Partition:
    bound = bounding.bound_by_links(scores, size)
    found = improving.improve(scores, size, must, _TRIES_ALONE, bound)
    return build_partition(scores, found.masks, size, must, bound)


def _search(scores: Scores, size: int, must: int) -> Partition:
    count = len(scores)
    listing = bounding.list_sets(scores, size, must)
    found = improving.improve(scores, size, must, _TRIES, listing.bound)
    candidates = listing.reaching(found.total)
    bounding.narrow(candidates, count, found.total)
    cover = covering.Cover(candidates, count, size, None if count <= EXACT else _MOST_STEPS)
    try:
        masks = cover.find(candidates.bound - found.total)
    except covering.OutOfSteps:
        bound = min(candidates.bound, bounding.bound_by_links(scores, size))
        return build_partition(scores, found.masks, size, must, bound)
    return build_partition(scores, masks, size, must)
