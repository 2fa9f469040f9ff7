"""What a policy is, and what all of them do first. A policy of your own needs nothing but a `choose`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from gpushare.allocation.topology import Topology


class Policy(Protocol):
    """Chooses GPUs by their indices. The same question must give the same answer; called from any thread."""

    def choose(
        self, topology: Topology, available: Sequence[int], required: Sequence[int], size: int
    ) -> tuple[int, ...]:
        """Picks `size` of the available GPUs, all of `required` among them; empty where that cannot be done."""
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """A question that can be answered."""

    free: tuple[int, ...]
    """Indices to choose from, ascending, each once; all are known to the topology."""
    required: tuple[int, ...]
    """Those of them that must be in the answer, in the order given."""
    size: int


def read_request(topology: Topology, available: Iterable[int], required: Iterable[int], size: int) -> Request | None:
    """Sorts a question, and leaves out GPUs that the topology does not know. None where no answer is possible."""
    free = topology.known_of(available)
    must = tuple(dict.fromkeys(required))
    if size < 1 or len(free) < size or len(must) > size or (must and not set(must).issubset(free)):
        return None
    return Request(free, must, size)
