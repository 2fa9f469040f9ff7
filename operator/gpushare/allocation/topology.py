"""How close the GPUs of a node are to each other, as figures. What every policy chooses by.

The figures are go-gpuallocator's: 10 to 60 for where two GPUs meet in the PCI tree, and 100 for each NVLink, both added.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from operator import itemgetter
from typing import Final, Self

from gpushare.domain.devices import Inventory
from gpushare.domain.links import Ancestor, Link

Scores = tuple[tuple[int, ...], ...]
"""A figure for each two devices; symmetric, none negative, 0 on the diagonal."""

_PLACES: Final = {
    Ancestor.SYSTEM: 10,
    Ancestor.NUMA_NODE: 20,
    Ancestor.HOST_BRIDGE: 30,
    Ancestor.SWITCHES: 40,
    Ancestor.SWITCH: 50,
    Ancestor.BOARD: 60,
}
_NVLINK: Final = 100
_MOST_NVLINKS: Final = 18
"""More of them count no more, as in go-gpuallocator."""


def score_of(link: Link, *, through_switches: bool = True) -> int:
    """The figure of one pair. go-gpuallocator does not see NVSwitches: without them it is the very same."""
    nvlinks = link.nvlinks + (link.switched if through_switches else 0)
    place = 0 if link.ancestor is None else _PLACES[link.ancestor]
    return place + _NVLINK * min(nvlinks, _MOST_NVLINKS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Every pair of a node's GPUs, with its score. Made once and kept as long as the GPUs are the same."""

    gpus: tuple[int, ...]
    """Their indices, ascending. There may be holes, where a GPU is lost."""
    scores: Scores
    """By position in `gpus`."""
    links: tuple[Link, ...] = ()
    """What the scores come from; empty where only they are known."""
    _known: frozenset[int] = field(init=False, repr=False, compare=False)
    _positions: Mapping[int, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_known", frozenset(self.gpus))
        object.__setattr__(self, "_positions", {gpu: position for position, gpu in enumerate(self.gpus)})

    @classmethod
    def of(cls, inventory: Inventory, *, through_switches: bool = True) -> Self:
        """The topology of an inventory's GPUs, by its links. A pair without a link scores 0.

        Links through NVSwitches count like direct ones. Where each GPU has the same number of them, that changes no answer of
        any policy, as it adds the same to every pair; without them, scores are exactly those of go-gpuallocator.
        """
        gpus = tuple(sorted(gpu.index for gpu in inventory.gpus))
        by_pair = {link.gpus: score_of(link, through_switches=through_switches) for link in inventory.links}
        scores = tuple(tuple(by_pair.get((min(a, b), max(a, b)), 0) if a != b else 0 for b in gpus) for a in gpus)
        return cls(gpus=gpus, scores=scores, links=tuple(link for link in inventory.links if {*link.gpus} <= {*gpus}))

    @classmethod
    def from_pair_scores(cls, matrix: Sequence[Sequence[int]]) -> Self:
        """GPUs 0, 1, 2, ... with these scores. Where the two directions of a pair differ, the lesser score counts.

        Raises:
            ValueError: the matrix is not square, or a score is negative or no whole number.
        """
        count = len(matrix)
        for index, row in enumerate(matrix):
            if len(row) != count:
                raise ValueError(f"row {index} has {len(row)} scores; a matrix of {count} GPUs has {count} in each")
            if not all(isinstance(score, int) and score >= 0 for score in row):
                raise ValueError(f"row {index} has a score that is no whole number of 0 or more: {list(row)}")
        gpus = tuple(range(count))
        scores = tuple(tuple(min(matrix[a][b], matrix[b][a]) if a != b else 0 for b in gpus) for a in gpus)
        return cls(gpus=gpus, scores=scores)

    def known_of(self, gpus: Iterable[int]) -> tuple[int, ...]:
        """Those of some indices that belong to a GPU of this topology, ascending, each once."""
        return tuple(sorted(self._known.intersection(gpus)))

    def score(self, one: int, other: int) -> int:
        """How close two GPUs are; 0 for a GPU and itself, and for one that is not known."""
        positions = self._positions
        if one not in positions or other not in positions:
            return 0
        return self.scores[positions[one]][positions[other]]

    def score_of_set(self, gpus: Iterable[int]) -> int:
        """The scores of all pairs of a set, added."""
        return sum(self.score(one, other) for one, other in combinations(gpus, 2))

    def matrix(self, gpus: Collection[int]) -> Scores:
        """The scores of some of the GPUs, in the order given. Raises KeyError for one that is not known."""
        if gpus == self.gpus:
            return self.scores
        positions = [self._positions[gpu] for gpu in gpus]
        if len(positions) < 2:
            return tuple((0,) for _ in positions)
        pick = itemgetter(*positions)
        return tuple(map(pick, pick(self.scores)))
