"""How high a total can be at most, and which sets can be in a partition that reaches it. The heart of the search.

Each device is given a price, and each set is worth its scores less the prices of its devices. A partition pays every price once;
so its total is all prices and what its sets are worth, and no total is above

    bound = all prices + number of sets x what the best set is worth + what the best rest is worth,

whatever the prices. A set that is worth less than the best by `cost` takes that much from the bound; so with a partition at hand
that is only `gap` below the bound, every set of a higher cost is out of the question. Good prices leave few sets over. The first
ones explain scores by devices alone as well as that can be done (least squares, which here has a closed form). Then devices that
too many of the best sets want become dearer and those that too few want cheaper, as long as that helps.

Everything that rules out is in whole numbers, so that it is certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, compress

from gpushare.allocation.partitions import subsets
from gpushare.allocation.topology import Scores

ENOUGH = 60
"""So few sets are searched faster than thinned out."""
_ROUNDS = 12
_WORK = 40_000
"""So many sets are priced anew at most, in all rounds together: some tens of milliseconds."""
_NEAR = 3
"""A set is wanted when it costs no more than this part of what the sets of a partition may cost on average."""
_NEVER = -(1 << 62)
"""What a set is worth that must not be used."""


@dataclass(slots=True)
class Family:
    """Sets of one size, first to last."""

    number: int
    """How many of them a partition has."""
    masks: Sequence[int]
    members: Sequence[tuple[int, ...]]
    costs: Sequence[int]

    def keep(self, most: int) -> None:
        """Drops the sets that cost more."""
        kept = [cost <= most for cost in self.costs]
        self.masks = list(compress(self.masks, kept))
        self.members = list(compress(self.members, kept))
        self.costs = list(compress(self.costs, kept))


@dataclass(slots=True)
class Candidates:
    """Sets of which a best partition may consist, and what it can reach at most."""

    full: Family
    rest: Family
    """What may be left over; only the empty set, where sizes fit."""
    bound: int

    @property
    def count(self) -> int:
        """How many sets there are."""
        return len(self.full.masks) + len(self.rest.masks)


@dataclass(frozen=True, slots=True)
class Listing:
    """All sets that may be used, and what they are worth at the first prices."""

    devices: int
    prices: int
    """All of them, added."""
    worths: Sequence[tuple[int, int, Sequence[int]]]
    """Of full sets, and of what may be left over: their number in a partition, their size, what each is worth."""

    @property
    def bound(self) -> int:
        """No total is higher."""
        return self.prices + sum(number * max(worths) for number, _, worths in self.worths)

    def reaching(self, total: int) -> Candidates:
        """The sets that a partition of at least this total may hold."""
        full, rest = (self._family(each, self.bound - total) for each in self.worths)
        return Candidates(full, rest, self.bound)

    def _family(self, listed: tuple[int, int, Sequence[int]], gap: int) -> Family:
        number, size, worths = listed
        best = max(worths)
        least = best - gap
        kept = [worth >= least for worth in worths]
        return Family(
            number,
            list(compress(subsets.masks_of_size(self.devices, size), kept)),
            list(compress(combinations(range(self.devices), size), kept)),
            [best - worth for worth in compress(worths, kept)],
        )


def bound_by_links(scores: Scores, size: int) -> int:
    """A weaker bound without listing sets: each device has all of its best links."""
    return sum(sum(sorted(row, reverse=True)[: size - 1]) for row in scores) // 2


def list_sets(scores: Scores, size: int, required: int) -> Listing:
    """All sets but those that split the required devices, or would leave them over."""
    count = len(scores)
    number, rest = divmod(count, size)
    prices = [sum(row) * (size - 1) // (count - 2) for row in scores]
    full, left_over = subsets.list_scores(scores, prices, (size, rest))
    if required:
        full = _only(full, subsets.masks_of_size(count, size), required, (0, required))
        left_over = _only(left_over, subsets.masks_of_size(count, rest), required, (0,))
    return Listing(count, sum(prices), ((number, size, full), (1, rest, left_over)))


def narrow(candidates: Candidates, devices: int, total: int) -> None:
    """Finds better prices, which lower the bound, and drops what no partition of at least `total` can hold then."""
    share, work = 0.5, 0
    for _ in range(_ROUNDS):
        gap = candidates.bound - total
        work += candidates.count
        if gap <= 0 or candidates.count <= ENOUGH or work > _WORK:
            return
        changes = _changes(candidates, devices, gap, share)
        if not any(changes):
            return
        if _reprice(candidates, changes):
            for family in (candidates.full, candidates.rest):
                family.keep(candidates.bound - total)
        else:
            share /= 2


def _only(worths: Sequence[int], masks: Sequence[int], required: int, shared: Sequence[int]) -> list[int]:
    return [worth if mask & required in shared else _NEVER for worth, mask in zip(worths, masks, strict=True)]


def _changes(candidates: Candidates, devices: int, gap: int, share: float) -> list[int]:
    """By how much each device becomes dearer: a step towards prices at which each is wanted once."""
    wanted = [-1.0] * devices
    most = gap // (_NEAR * candidates.full.number)
    for family in (candidates.full, candidates.rest):
        near = [members for members, cost in zip(family.members, family.costs, strict=True) if cost <= most]
        for members in near:
            for member in members:
                wanted[member] += family.number / len(near)
    length = sum(surplus * surplus for surplus in wanted)
    return [int(share * gap * surplus / length) for surplus in wanted] if length else []


def _reprice(candidates: Candidates, changes: Sequence[int]) -> bool:
    """Changes the prices where that lowers the bound. False: it does not."""
    bound = candidates.bound + sum(changes)
    costs = []
    for family in (candidates.full, candidates.rest):
        dearer = [
            cost + sum(map(changes.__getitem__, members))
            for cost, members in zip(family.costs, family.members, strict=True)
        ]
        least = min(dearer)
        bound -= family.number * least
        costs.append([cost - least for cost in dearer])
    if bound >= candidates.bound:
        return False
    candidates.bound = bound
    candidates.full.costs, candidates.rest.costs = costs
    return True
