"""How full a GPU or a node is, as figures to order them by. Used by `policies`, `fitting` and `looks`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from gpushare.domain.fractions import Placement
from gpushare.placement.gpus import Traits, Use
from gpushare.placement.shapes import Weights

HIGHEST: Final = 10
"""What kube-scheduler takes from an extender at most."""


class Sums(NamedTuple):
    """Slots, compute and memory of several GPUs together: all that there is, or what is used of it."""

    slots: int
    cores: int
    memory_mib: int


def sums_of(gpus: Iterable[tuple[Traits, Use]]) -> tuple[Sums, Sums]:
    """What some GPUs give out, and what is used of it."""
    slots = cores = memory = used_slots = used_cores = used_memory = 0
    for traits, use in gpus:
        slots, cores, memory = slots + traits.slots, cores + traits.cores, memory + traits.memory_mib
        used_slots, used_cores = used_slots + use.slots, used_cores + use.cores
        used_memory += use.memory_mib
    return Sums(slots, cores, memory), Sums(used_slots, used_cores, used_memory)


def gpu_score(traits: Traits, use: Use, weights: Weights) -> float:
    """HAMi's figure for one GPU, `use` with the container that is to be placed: the higher, the fuller.

    0 where a GPU gives out nothing of one kind, as HAMi has it; a GPU without a limit of slots is judged by the others.
    """
    if not (traits.cores and traits.memory_mib):
        return 0.0
    slots = weights.slot * use.slots / traits.slots if traits.slots else 0.0
    cores = weights.core * use.cores / traits.cores
    return HIGHEST * (slots + cores + weights.memory * use.memory_mib / traits.memory_mib)


def node_score(whole: Sums, used: Sums, weights: Weights, policy: Placement) -> float:
    """0 to 10, the higher the better: how well a node with this use of the GPUs in question suits a policy.

    Unlike HAMi's it is taken after the pod has been placed, and only over GPUs that the pod may use.
    """
    slots = weights.slot if whole.slots else 0
    scale = slots + weights.core + weights.memory
    if not (whole.cores and whole.memory_mib and scale):
        return 0.0
    fullness = weights.core * used.cores / whole.cores + weights.memory * used.memory_mib / whole.memory_mib
    if slots:
        fullness += slots * used.slots / whole.slots
    fullness = min(1.0, max(0.0, fullness / scale))
    return HIGHEST * (fullness if policy is Placement.BINPACK else 1 - fullness)


def build_priorities(scores: Mapping[str, float]) -> dict[str, int]:
    """Whole numbers of 0 to 10 for kube-scheduler, stretched over the nodes in question.

    In whole numbers, nodes that differ by one container of eighty would all be alike.
    """
    lowest, highest = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    span = highest - lowest
    # Thousands of nodes have few scores.
    priorities = {score: round(HIGHEST * (score - lowest) / span) if span else HIGHEST for score in {*scores.values()}}
    return {node: priorities[score] for node, score in scores.items()}
