"""Why these GPUs: what a choice was weighed against. For people; nothing is chosen by it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from gpushare.allocation.best_effort import BestEffort
from gpushare.allocation.policies import Request
from gpushare.allocation.topology import Topology

if TYPE_CHECKING:
    from gpushare.allocation.partitions.values import Partition

_MOST_SETS = 20_000
"""So many are looked at to find the one with the highest score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A set with a higher score of its own, and why it was left alone."""

    gpus: tuple[int, ...]
    score: int
    total: int
    """What all sets add up to at most once it is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What the best-effort policy weighed up; all GPUs by index."""

    partition: Partition
    alternative: Alternative | None
    """None: no set has a higher score, or there are too many to tell."""


def explain(topology: Topology, request: Request) -> Explanation | None:
    """What is to be said about the best-effort policy's answer. None where nothing was weighed up."""
    policy = BestEffort()
    partition = policy.divide(topology, request.free, request.required, request.size)
    if partition is None:
        return None
    return Explanation(partition=partition, alternative=_find_alternative(topology, request, partition))


def _find_alternative(topology: Topology, request: Request, partition: Partition) -> Alternative | None:
    others = [gpu for gpu in request.free if gpu not in request.required]
    sets = combinations(others, request.size - len(request.required))
    # One more than are looked at tells whether these were all.
    looked_at = [
        tuple(sorted((*request.required, *each))) for each, _ in zip(sets, range(_MOST_SETS + 1), strict=False)
    ]
    best = max(looked_at, key=topology.score_of_set)
    score = topology.score_of_set(best)
    if len(looked_at) > _MOST_SETS or score <= topology.score_of_set(partition.chosen):
        return None
    left = [gpu for gpu in request.free if gpu not in best]
    rest = BestEffort().divide(topology, left, (), request.size)
    return Alternative(gpus=best, score=score, total=score + (rest.total if rest else topology.score_of_set(left)))
