"""Devices divided into sets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gpushare.allocation.partitions import subsets
from gpushare.allocation.topology import Scores


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One way to divide all devices, by position."""

    sets: tuple[tuple[int, ...], ...]
    """Full ones, in order of their first devices."""
    rest: tuple[int, ...] = ()
    """The devices left over, fewer than a set has."""
    chosen: tuple[int, ...]
    """The set to take: the one that holds what is required; without that, the first with the highest score."""
    total: int
    """The scores of all sets and of the rest."""
    bound: int
    """No partition has a higher total. Equal to `total`: this is the best one."""

    @property
    def is_exact(self) -> bool:
        """Whether it is proven that there is no better one."""
        return self.total == self.bound

    def renamed(self, names: Sequence[int]) -> Partition:
        """The same with other numbers: the one at position p is `names[p]`."""

        def rename(members: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(names[member] for member in members)

        return replace(self, sets=tuple(map(rename, self.sets)), rest=rename(self.rest), chosen=rename(self.chosen))


def build_partition(
    scores: Scores, masks: Iterable[int], size: int, required: int, bound: int | None = None
) -> Partition:
    """A partition of these sets, in any order, one of which may be smaller. Without a bound it is known to be the best."""
    ordered = [subsets.positions_of(mask, len(scores)) for mask in sorted(masks, reverse=True)]
    full = tuple(members for members in ordered if len(members) == size)
    must = subsets.positions_of(required, len(scores))
    total = sum(score_of(scores, members) for members in ordered)
    return Partition(
        sets=full,
        rest=next((members for members in ordered if len(members) < size), ()),
        # Of equal scores, `max` takes the first.
        chosen=max(
            (members for members in full if set(must) <= set(members)), key=lambda members: score_of(scores, members)
        ),
        total=total,
        bound=total if bound is None else bound,
    )


def score_of(scores: Scores, members: Sequence[int]) -> int:
    """The scores of all pairs of a set, added."""
    return sum(scores[one][other] for place, one in enumerate(members) for other in members[:place])
