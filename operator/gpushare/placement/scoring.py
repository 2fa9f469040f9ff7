"""How full a GPU or a node is, as figures to order them by. Used by `policies` and `fitting`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from gpushare.domain.fractions import Placement
from gpushare.placement.gpus import Traits, Use
from gpushare.placement.shapes import Weights

HIGHEST: Final = 10
"""What kube-scheduler takes from an extender at most."""


def gpu_score(traits: Traits, use: Use, weights: Weights) -> float:
    """HAMi's figure for one GPU, `use` with the container that is to be placed: the higher, the fuller.

    0 where a GPU gives out nothing of one kind, as HAMi has it; a GPU without a limit of slots is judged by the others.
    """
    if not (traits.cores and traits.memory_mib):
        return 0.0
    slots = weights.slot * use.slots / traits.slots if traits.slots else 0.0
    cores = weights.core * use.cores / traits.cores
    return HIGHEST * (slots + cores + weights.memory * use.memory_mib / traits.memory_mib)


def node_score(gpus: Iterable[tuple[Traits, Use]], weights: Weights, policy: Placement) -> float:
    """0 to 10, the higher the better: how well a node with this use of the GPUs in question suits a policy.

    Unlike HAMi's it is taken after the pod has been placed, and only over GPUs that the pod may use.
    """
    total = (0, 0, 0)
    used = (0, 0, 0)
    for traits, use in gpus:
        total = (total[0] + traits.slots, total[1] + traits.cores, total[2] + traits.memory_mib)
        used = (used[0] + use.slots, used[1] + use.cores, used[2] + use.memory_mib)
    parts = [(weight, one / whole) for weight, one, whole in zip(weights, used, total, strict=True) if whole]
    scale = sum(weight for weight, _ in parts)
    fullness = sum(weight * part for weight, part in parts) / scale if scale else 0.0
    fullness = min(1.0, max(0.0, fullness))
    return HIGHEST * (fullness if policy is Placement.BINPACK else 1 - fullness)


def build_priorities(scores: Mapping[str, float]) -> dict[str, int]:
    """Whole numbers of 0 to 10 for kube-scheduler, stretched over the nodes in question.

    In whole numbers, nodes that differ by one container of eighty would all be alike.
    """
    lowest, highest = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    span = highest - lowest
    return {node: round(HIGHEST * (score - lowest) / span) if span else HIGHEST for node, score in scores.items()}
