"""The policy that leaves as much as possible for those who come next: go-gpuallocator's best effort, without its defects.

It answers as if every later request asked for as many GPUs: all available GPUs are divided into sets of that size, so that the
scores of all sets add up to the most, and the best of these sets is the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpushare.allocation.policies import Request, read_request
from gpushare.allocation.topology import Topology

if TYPE_CHECKING:
    from gpushare.allocation.partitions.values import Partition


class BestEffort:
    """Exact up to 16 GPUs; above, as `partitions.solving` says. Of equal answers, the first in order of indices."""

    def choose(
        self, topology: Topology, available: Sequence[int], required: Sequence[int], size: int
    ) -> tuple[int, ...]:
        """The best set, ascending. Never holds what is not available, and never fewer than asked for."""
        request = read_request(topology, available, required, size)
        if request is None:
            return ()
        if size == len(request.free):
            return request.free
        if size == len(request.required):
            return tuple(sorted(request.required))
        if size == 1:
            return request.free[:1]
        return tuple(request.free[position] for position in _divide(topology, request).chosen)

    def divide(
        self, topology: Topology, available: Sequence[int], required: Sequence[int], size: int
    ) -> Partition | None:
        """All sets of which `choose` takes one, with GPUs by their indices. None where nothing had to be weighed up."""
        request = read_request(topology, available, required, size)
        if request is None or size in (1, len(request.free), len(request.required)):
            return None
        return _divide(topology, request).renamed(request.free)


def _divide(topology: Topology, request: Request) -> Partition:
    from gpushare.allocation.partitions import solving  # late: an agent's first list does not wait for it

    positions = tuple(request.free.index(gpu) for gpu in request.required)
    return solving.divide(topology.matrix(request.free), request.size, tuple(sorted(positions)))
