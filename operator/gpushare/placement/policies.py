"""Which of the GPUs that take a container it gets. The order is HAMi's; what is first in a list here is taken first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from gpushare.allocation import BestEffort, Topology
from gpushare.domain.fractions import Dialect, Placement
from gpushare.placement.gpus import Traits, Use
from gpushare.placement.nodes import NodeState
from gpushare.placement.scoring import gpu_score
from gpushare.placement.shapes import PodRequest, Policy, Weights

_KEYS: Final[tuple[Policy, ...]] = (Policy.BINPACK, Policy.SPREAD, Policy.NUMA)
_MEMORY_ONLY: Final = Weights(0, 0, 1)
_BEST: Final = BestEffort()
Key: TypeAlias = tuple[float, ...]
Choice: TypeAlias = tuple[int, ...]
"""Positions of GPUs in their node."""


@lru_cache(maxsize=256)
def order_of(words: tuple[Policy, ...], placement: Placement, *, is_bound: bool) -> tuple[Policy, ...]:
    """By what GPUs are sorted: the words of a request, or else the placement of the node.

    Words that sort nothing only say which GPUs come into question; `mutex` alone sorts. Where NUMA nodes bind, they come
    first, so that GPUs of one are taken together.
    """
    keys = tuple(word for word in words if word in _KEYS)
    if not words:
        keys = (Policy(placement.value),)
    elif not keys:
        keys = words if words == (Policy.MUTEX,) else (Policy.SPREAD,)
    if is_bound:
        keys = (Policy.NUMA, *(key for key in keys if key is not Policy.NUMA))
    return keys


def build_key(traits: Traits, before: Use, after: Use, order: Sequence[Policy], request: PodRequest) -> Key:
    """What to sort GPUs by, lowest first.

    Args:
        traits: of the GPU.
        before: its use, with what the pod has there already.
        after: that with the container.
        order: the keys, as `order_of` says.
        request: of the pod.
    """
    if request.dialect is Dialect.ALIYUN:
        if Policy.BINPACK in order:
            return (traits.memory_mib - before.memory_mib,)
        return (gpu_score(traits, after, _MEMORY_ONLY),)
    parts: list[float] = []
    for word in order:
        if word is Policy.NUMA:
            # Bound and packed: from the first NUMA node on, where the others start from the last.
            is_packed = request.constraints.numa_bind and Policy.BINPACK in order
            parts.append(traits.numa if is_packed else -traits.numa)
        elif word is Policy.MUTEX:
            parts.append(before.slots)
        else:
            score = gpu_score(traits, after, request.weights)
            parts.append(-score if word is Policy.BINPACK else score)
    return (*parts, -traits.numa)


def choices(
    node: NodeState, request: PodRequest, candidates: Sequence[int], must: Sequence[int], size: int
) -> Iterator[Choice]:
    """Sets of GPUs that suit a container, the best first, then some others that may leave more to the next container.

    Args:
        node: whose GPUs they are.
        request: of the pod.
        candidates: positions, best first; at least `size` of them.
        must: those of them that are in every set.
        size: how many the container gets.
    """
    missing = size - len(must)
    topology = node.topology if Policy.TOPOLOGY in request.gpu_policy else None
    for group in _groups(node, candidates, must, is_bound=request.constraints.numa_bind):
        if len(group) < missing:
            continue
        if topology is not None:
            yield _closest(topology, (*must, *group), must, size)
        for first in range(len(group) - missing + 1 if missing else 1):
            yield (*must, *group[first : first + missing])


def _groups(node: NodeState, candidates: Sequence[int], must: Sequence[int], *, is_bound: bool) -> Iterator[list[int]]:
    """The candidates that are not in every set anyway; where NUMA nodes bind, a group for each that has all of `must`."""
    groups: dict[int, list[int]] = {}
    for position in candidates:
        groups.setdefault(node.gpus[position].traits.numa if is_bound else 0, []).append(position)
    for group in groups.values():
        if set(must) <= set(group):
            yield [position for position in group if position not in must]


def _closest(topology: Topology, positions: Sequence[int], must: Sequence[int], size: int) -> Choice:
    """The GPUs that are closest to each other; a single one is taken where it is missed least."""
    if size == 1 and not must:
        return (min(positions, key=lambda one: sum(topology.score(one, other) for other in topology.gpus)),)
    return _BEST.choose(topology, positions, must, size)
