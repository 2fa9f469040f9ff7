"""Whether one GPU takes one container, and if not, why. Asked by `fitting`; every check is HAMi's, in HAMi's order."""

from __future__ import annotations

from typing import NamedTuple

from gpushare.domain.fractions import Dialect, FractionMode, Isolation
from gpushare.placement.counting import Tally
from gpushare.placement.gpus import Traits, Use
from gpushare.placement.nodes import NodeState
from gpushare.placement.reasons import Code
from gpushare.placement.shapes import WHOLE, Constraints, ContainerRequest, PodRequest


class Demand(NamedTuple):
    """What a container means for GPUs with certain traits."""

    memory_mib: int
    cores: int
    """100 or more: nobody else may be on the GPU."""


def demand_of(container: ContainerRequest, traits: Traits, mode: FractionMode) -> Demand:
    """Percent and units become MiB of this GPU."""
    if container.units:
        return Demand(container.units * mode.unit_mib, container.cores)
    return Demand(container.memory_mib or traits.memory_mib * container.memory_percent // 100, container.cores)


def check_node(node: NodeState, request: PodRequest) -> Code | None:
    """What is in the way whatever is free."""
    mode = node.mode
    if mode is None:
        return Code.NO_FRACTIONS
    if not node.is_ready:
        return Code.AGENT_NOT_READY
    if not node.is_settled:
        return Code.NOT_APPLIED
    if mode.dialect is not request.dialect:
        return Code.DIALECT
    if request.most_gpus > len(node.gpus):
        return Code.FEW_DEVICES
    return _check_compute(node, mode, request)


def _check_compute(node: NodeState, mode: FractionMode, request: PodRequest) -> Code | None:
    """Whether the node gives out compute as the pod wants it. A GPU alone it always does."""
    if not mode.compute and any(0 < container.cores < WHOLE for container in request.containers):
        return Code.COMPUTE_NOT_SERVED
    is_apart = mode.dialect is Dialect.ALIYUN and mode.isolation is not Isolation.EXCLUSIVE
    if is_apart and _is_mixed(node, request):
        return Code.COMPUTE_MIXED
    return None


def _is_mixed(node: NodeState, request: PodRequest) -> bool:
    """Whether pods with and without a share of compute would meet, which Alibaba's isolation cannot hold apart."""
    if any(container.cores for container in request.containers):
        return any(use.unlimited for use in node.uses)
    return any(use.cores for use in node.uses)


def check_constraints(uuid: str, traits: Traits, constraints: Constraints, tier: Isolation) -> Code | None:
    """What is in the way of every container of a pod alike."""
    if not traits.is_healthy:
        return Code.UNHEALTHY
    if traits.is_cordoned:
        return Code.CORDONED
    if not _is_wanted(traits.model, constraints) or (constraints.tier and tier.value not in constraints.tier):
        return Code.TYPE
    if uuid in constraints.avoid_uuids or (constraints.use_uuids and uuid not in constraints.use_uuids):
        return Code.UUID
    return None


def _is_wanted(model: str, constraints: Constraints) -> bool:
    if constraints.avoid_models and any(part in model for part in constraints.avoid_models):
        return False
    return not constraints.use_models or any(part in model for part in constraints.use_models)


def check_room(traits: Traits, use: Use, tally: Tally, demand: Demand, *, is_mutex: bool) -> Code | None:
    """Whether what is free is enough. `use` is what other pods take, `tally` what this one has on the GPU already."""
    if traits.slots and not tally.reusable and use.slots + tally.held >= traits.slots:
        return Code.SLOTS
    if is_mutex and (use.slots or tally.slots):
        return Code.EXCLUSIVE
    if traits.memory_mib - use.memory_mib < max(tally.most_memory_mib, tally.memory_mib + demand.memory_mib):
        return Code.MEMORY
    return _check_cores(traits, use, tally, demand.cores)


def _check_cores(traits: Traits, use: Use, tally: Tally, cores: int) -> Code | None:
    if traits.cores - use.cores < max(tally.most_cores, tally.cores + cores):
        return Code.CORES
    if cores >= WHOLE and (use.slots or tally.slots):
        return Code.EXCLUSIVE
    if cores == 0 and use.cores + tally.cores >= traits.cores:
        return Code.CORES_EXHAUSTED
    # Where compute is over-committed, a GPU that somebody wants alone still shows free compute.
    return Code.EXCLUSIVE if use.alone or tally.alone > 1 else None
