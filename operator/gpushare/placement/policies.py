"""Which of the GPUs that take a container it gets. The order is HAMi's; what is first in a list here is taken first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from gpushare.allocation import BestEffort, Topology
from gpushare.domain.fractions import Dialect, Placement
from gpushare.placement.gpus import GPU, Use
from gpushare.placement.scoring import gpu_score
from gpushare.placement.shapes import PodRequest, Policy, Weights

_KEYS: Final[tuple[Policy, ...]] = (Policy.BINPACK, Policy.SPREAD, Policy.NUMA)
_MEMORY_ONLY: Final = Weights(0, 0, 1)
_BEST: Final = BestEffort()
Key: TypeAlias = tuple[float, ...]
Choice: TypeAlias = tuple[int, ...]
"""Positions of GPUs in their node."""


class Candidate(NamedTuple):
    """A GPU that takes the container."""

    position: int
    gpu: GPU
    use: Use
    """With the container on it."""
    before: Use
    """Without it, but with what the pod already has there."""


def order_of(request: PodRequest, placement: Placement) -> tuple[Policy, ...]:
    """The words of a request, or the placement of the node, as the keys that GPUs are sorted by; `mutex` alone is one of them.

    Where NUMA nodes bind, they come first, so that GPUs of one are taken together.
    """
    words = tuple(dict.fromkeys(request.gpu_policy))
    keys = tuple(word for word in words if word in _KEYS)
    if not words:
        keys = (Policy(placement.value),)
    elif not keys:
        keys = words if words == (Policy.MUTEX,) else (Policy.SPREAD,)
    if request.constraints.numa_bind:
        keys = (Policy.NUMA, *(key for key in keys if key is not Policy.NUMA))
    return keys


def build_key(candidate: Candidate, order: Sequence[Policy], request: PodRequest) -> Key:
    """What to sort by, lowest first. Of equal GPUs HAMi takes the last one, Alibaba's scheduler the first."""
    gpu, traits = candidate.gpu, candidate.gpu.traits
    if request.dialect is Dialect.ALIYUN:
        if order[0] is Policy.BINPACK:
            return (traits.memory_mib - candidate.before.memory_mib, gpu.index)
        return (gpu_score(traits, candidate.use, _MEMORY_ONLY), gpu.index)
    score = gpu_score(traits, candidate.use, request.weights)
    parts = {
        Policy.BINPACK: -score,
        Policy.SPREAD: score,
        Policy.MUTEX: candidate.before.slots,
        # Bound and packed: from the first NUMA node on, where the others start from the last.
        Policy.NUMA: traits.numa if order == (Policy.NUMA, Policy.BINPACK) else -traits.numa,
    }
    return (*(parts[word] for word in order), -traits.numa, -gpu.index)


def choices(
    candidates: Sequence[Candidate], must: Sequence[int], size: int, request: PodRequest, topology: Topology | None
) -> Iterator[Choice]:
    """Sets of GPUs that suit a container, the best first, then some others that may leave more to the next container.

    Args:
        candidates: best first; at least `size` of them.
        must: positions of those that are in every set.
        size: how many the container gets.
        request: of the pod.
        topology: of the node, by positions.
    """
    positions = [candidate.position for candidate in candidates]
    if topology is not None and Policy.TOPOLOGY in request.gpu_policy:
        yield _closest(topology, positions, must, size)
    for group in _groups(candidates, must, is_bound=request.constraints.numa_bind):
        for first in range(max(1, len(group) - size + len(must) + 1)):
            choice = (*must, *group[first : first + size - len(must)])
            if len(choice) == size:
                yield choice


def _groups(candidates: Sequence[Candidate], must: Sequence[int], *, is_bound: bool) -> Iterator[list[int]]:
    """The candidates that are not in every set anyway, where NUMA nodes bind one group for each of those."""
    groups: dict[int, list[int]] = {}
    for candidate in candidates:
        groups.setdefault(candidate.gpu.traits.numa if is_bound else 0, []).append(candidate.position)
    for group in groups.values():
        if set(must) <= set(group):
            yield [position for position in group if position not in must]


def _closest(topology: Topology, positions: Sequence[int], must: Sequence[int], size: int) -> Choice:
    """The GPUs that are closest to each other; a single one is taken where it is missed least."""
    if size == 1 and not must:
        return (min(positions, key=lambda one: sum(topology.score(one, other) for other in topology.gpus)),)
    return _BEST.choose(topology, positions, must, size)
