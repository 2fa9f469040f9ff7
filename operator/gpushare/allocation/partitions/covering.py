"""The cheapest sets that cover every device once, among those that bounding leaves over.

Always the first open device gets its set next, so that each partition is met once; what covering the rest of the devices costs is
remembered by which devices these are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import neg

from gpushare.allocation.partitions.bounding import Candidates

_TOO_MUCH = 1 << 62


class OutOfSteps(Exception):  # noqa: N818 - it is no error, but the end of patience
    """The search was given up: it took more steps than it was allowed."""


class Cover:
    """One search. `find` it once."""

    def __init__(self, candidates: Candidates, devices: int, size: int, steps: int | None) -> None:
        """Looks at `steps` sets at most; None: at all that it takes."""
        self._devices = devices
        self._size = size
        self._steps = steps if steps is not None else _TOO_MUCH
        self._families = (candidates.full, candidates.rest)
        self._opening: dict[int, Sequence[tuple[int, int]]] = {}
        self._cheapest: dict[int, int] = {0: 0}
        self._dearer: dict[int, int] = {}
        """Of open devices of which only that is known: covering them costs more than this."""

    def find(self, budget: int) -> Sequence[int]:
        """Of the partitions with the lowest cost, the first. There must be one within the budget. Raises OutOfSteps."""
        open_ = (1 << self._devices) - 1
        left = self._cost(open_, budget)
        masks = []
        while open_:
            # By mask, not by cost: what is wanted now is the first set from which the lowest cost can be reached.
            for mask, price in sorted(self._sets_of(open_.bit_length()), reverse=True):
                if price <= left and self._fits(mask, open_) and self._cost(open_ ^ mask, left - price) == left - price:
                    masks.append(mask)
                    open_ ^= mask
                    left -= price
                    break
        return masks

    def _fits(self, mask: int, open_: int) -> bool:
        # A smaller set stands once, and only while the number of open devices is no multiple of the size.
        return not mask & ~open_ and (mask.bit_count() == self._size or open_.bit_count() % self._size != 0)

    def _cost(self, open_: int, budget: int) -> int:
        """The lowest cost of covering the open devices, or _TOO_MUCH where that is above the budget."""
        known = self._cheapest.get(open_)
        if known is not None:
            return known if known <= budget else _TOO_MUCH
        if self._dearer.get(open_, -1) >= budget:
            return _TOO_MUCH
        best = self._search(open_, budget)
        if best == _TOO_MUCH:
            self._dearer[open_] = budget
        else:
            self._cheapest[open_] = best
        return best

    def _cheapest_of(self, bits: int) -> Sequence[tuple[int, int]]:
        """Cost and mask of all sets whose first device is the highest of so many bits, the cheapest first."""
        sets = self._opening.get(bits)
        if sets is None:
            # Only now: where costs are all alike, few first devices are ever asked for.
            sets = self._opening[bits] = sorted((price, mask) for mask, price in self._sets_of(bits))
        return sets

    def _sets_of(self, bits: int) -> Iterator[tuple[int, int]]:
        for family in self._families:
            # Masks descend, so that those with one first device stand together.
            start, end = (bisect_right(family.masks, -(1 << power), key=neg) for power in (bits, bits - 1))
            yield from zip(family.masks[start:end], family.costs[start:end], strict=True)

    def _search(self, open_: int, budget: int) -> int:
        best, outside, fills = _TOO_MUCH, ~open_, open_.bit_count() % self._size == 0
        for price, mask in self._cheapest_of(open_.bit_length()):
            if price > budget:
                break
            self._steps -= 1
            # As in `_fits`, which is not called since this is where nearly all time goes.
            if mask & outside or (fills and mask.bit_count() != self._size):
                continue
            if self._steps < 0:
                raise OutOfSteps
            cost = price + self._cost(open_ ^ mask, budget - price)
            if cost <= budget:
                # From here on only something cheaper is of interest.
                best, budget = cost, cost - 1
        return best
