"""Policies that look up what goes well together on one kind of machine: sets that leave others as good for who comes next.

The tables are go-gpuallocator's. A size that a table does not have cannot be had.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from gpushare.allocation.policies import read_request
from gpushare.allocation.topology import Topology

Table = Mapping[int, Sequence[Sequence[int]]]
"""Sets by size; of several that can be had, the first."""


def _singles(count: int) -> Sequence[Sequence[int]]:
    return [(gpu,) for gpu in range(count)]


_HALVES: Final = ((0, 1, 2, 3), (4, 5, 6, 7))
_DGX1: Final[Mapping[str, Table]] = {
    "pascal": {1: _singles(8), 2: ((0, 2), (1, 3), (4, 6), (5, 7)), 4: _HALVES, 8: (range(8),)},
    "volta": {1: _singles(8), 2: ((0, 3), (1, 2), (4, 7), (5, 6)), 4: _HALVES, 8: (range(8),)},
}
_DGX2: Final[Table] = {size: [range(first, first + size) for first in range(0, 16, size)] for size in (1, 2, 4, 8, 16)}


class _Static:
    def __init__(self, table: Table) -> None:
        self._table = table

    def choose(
        self, topology: Topology, available: Sequence[int], required: Sequence[int], size: int
    ) -> tuple[int, ...]:
        """The first set of the table that is available and holds all that is required, which then comes first."""
        request = read_request(topology, available, required, size)
        if request is None:
            return ()
        for gpus in self._table.get(size, ()):
            if set(request.required) <= set(gpus) <= set(request.free):
                return tuple(sorted(gpus, key=lambda gpu: gpu not in request.required))
        return ()


class StaticDGX1(_Static):
    """For a DGX-1 with Pascal or with Volta GPUs."""

    def __init__(self, generation: Literal["pascal", "volta"]) -> None:
        """Raises ValueError for another generation."""
        if generation not in _DGX1:
            raise ValueError(f"no DGX-1 with {generation!r} GPUs; there are {' and '.join(map(repr, _DGX1))}")
        super().__init__(_DGX1[generation])


class StaticDGX2(_Static):
    """For a DGX-2, whose GPUs are Voltas."""

    def __init__(self) -> None:
        super().__init__(_DGX2)
