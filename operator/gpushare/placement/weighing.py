"""One container and one GPU: whether they go together, and how gladly. The common ground of `fitting` and of `looks`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

from gpushare.domain.fractions import FractionMode, Isolation
from gpushare.placement import checking, policies
from gpushare.placement.checking import Demand
from gpushare.placement.counting import Tally
from gpushare.placement.gpus import Traits, Use
from gpushare.placement.reasons import Code
from gpushare.placement.shapes import ContainerRequest, PodRequest, Policy


class Option(NamedTuple):
    """A GPU that takes the container."""

    key: policies.Key
    """The lowest is taken first."""
    demand: Demand


@dataclass(frozen=True, slots=True)
class Rules:
    """What a request means on nodes of one mode."""

    request: PodRequest
    mode: FractionMode
    order: tuple[Policy, ...]
    is_mutex: bool

    @classmethod
    def of(cls, request: PodRequest, mode: FractionMode) -> Self:
        """Works out the policies once, for all GPUs."""
        # Where GPUs are not shared at all, each pod wants one that nobody uses.
        is_mutex = Policy.MUTEX in request.gpu_policy or mode.isolation is Isolation.EXCLUSIVE
        order = policies.order_of(request.gpu_policy, mode.placement, is_bound=request.constraints.numa_bind)
        return cls(request, mode, order, is_mutex)

    def weigh(self, container: ContainerRequest, traits: Traits, use: Use, tally: Tally) -> Option | Code:
        """Judges a GPU, or says what is in the way. Whether the pod may have it at all was checked before.

        Args:
            container: what is to be placed.
            traits: of the GPU.
            use: what other pods take of it.
            tally: what containers of the same pod, placed before, make of it.
        """
        demand = checking.demand_of(container, traits, self.mode)
        code = checking.check_room(traits, use, tally, demand, is_mutex=self.is_mutex)
        if code is not None:
            return code
        before = Use(use.memory_mib + tally.memory_mib, use.cores + tally.cores, use.slots + tally.slots)
        after = Use(before.memory_mib + demand.memory_mib, before.cores + demand.cores, before.slots + 1)
        return Option(policies.build_key(traits, before, after, self.order, self.request), demand)
