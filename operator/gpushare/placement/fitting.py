"""Whether one pod fits on one node, onto which GPUs, and how well. For one node at a time; `index` asks about thousands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final, TypeAlias

from gpushare.domain.fractions import FractionMode, Grant
from gpushare.placement import checking, policies
from gpushare.placement.counting import NOTHING, Tally, charge_of, holding_of
from gpushare.placement.gpus import Holding
from gpushare.placement.nodes import NodeState
from gpushare.placement.policies import Choice
from gpushare.placement.quotas import FREE, UNLIMITED, Charge, Quota
from gpushare.placement.reasons import Code, Reason, build_message, whole_node
from gpushare.placement.scoring import node_score, sums_of
from gpushare.placement.shapes import ContainerRequest, PodRequest
from gpushare.placement.weighing import Rules

_MOST_CHOICES: Final = 64
"""Sets of GPUs that are tried for the containers of one pod before it counts as not fitting."""
_Tallies: TypeAlias = Mapping[int, Tally]
"""By position of the GPU: what the containers placed so far make of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The answer for one node."""

    containers: Mapping[str, tuple[Grant, ...]] | None = None
    """What each container gets; None: the pod does not fit."""
    reasons: tuple[Reason, ...] = ()
    """Why not; of the first container that finds no place."""
    score: float = 0.0
    """0 to 10, by the pod's policy for nodes; comparable between nodes."""
    holding: Holding = field(default_factory=dict)
    """What the pod takes of each GPU: for `NodeState.with_pod`."""
    charge: Charge = FREE
    """What the namespace's quota is charged with."""

    @property
    def message(self) -> str:
        """For `FailedNodes`."""
        return build_message(self.reasons)


def fit(node: NodeState, request: PodRequest, room: Quota = UNLIMITED) -> Fit:
    """Places a pod on a node as it is now, without changing it.

    Args:
        node: the node, without the pod.
        request: what the pod asks for.
        room: what is left of its namespace's quota.
    """
    code = checking.check_node(node, request)
    if code is Code.FEW_DEVICES:
        return Fit(reasons=(Reason(code, len(node.gpus), request.most_gpus),))
    if code is not None or node.mode is None:
        return Fit(reasons=(whole_node(code or Code.NO_FRACTIONS),))
    return _Search(node, node.mode, request, room).run()


class _Search:
    """One question. Containers are placed one after the other; where one finds no place, those before it try another."""

    def __init__(self, node: NodeState, mode: FractionMode, request: PodRequest, room: Quota) -> None:
        self._node = node
        self._mode = mode
        self._request = request
        self._room = room if request.is_charged else UNLIMITED
        self._rules = Rules.of(request, mode)
        self._screened = tuple(
            checking.check_constraints(gpu.uuid, gpu.traits, request.constraints, mode.isolation) for gpu in node.gpus
        )
        self._tried = 0
        self._reasons: tuple[Reason, ...] = ()

    def run(self) -> Fit:
        """The answer."""
        chosen = self._place(0, {}, NOTHING)
        return Fit(reasons=self._reasons) if chosen is None else self._build_fit(chosen)

    def _place(self, step: int, tallies: _Tallies, total: Tally) -> tuple[Choice, ...] | None:
        """Places the containers from a step on. `total` counts the pod as its namespace's quota does."""
        if step == len(self._request.steps):
            return ()
        container = self._request.steps[step]
        codes = Counter[Code]()
        candidates = self._find_candidates(container, tallies, codes)
        too_dear: set[int] = set()
        for choice in self._choices(candidates, container, tallies):
            self._tried += 1
            if self._tried > _MOST_CHOICES:
                break
            after, charged = self._take(container, choice, tallies, total)
            if not self._room.takes(Charge(charged.most_memory_mib, charged.most_cores)):
                too_dear.update(choice)
                continue
            rest = self._place(step + 1, after, charged)
            if rest is not None:
                return (choice, *rest)
        if not self._reasons:
            codes[Code.QUOTA] = len(too_dear)
            self._reasons = build_reasons(codes, len(candidates), self._request, step, len(self._node.gpus))
            if len(self._find_candidates(container, {}, Counter())) < container.gpus:
                # Not even alone: no other choice for those before it would help.
                self._tried = _MOST_CHOICES
        return None

    def _find_candidates(self, container: ContainerRequest, tallies: _Tallies, codes: Counter[Code]) -> list[int]:
        """Positions of the GPUs that take a container, best first; `codes` counts why the others do not."""
        found = []
        for position, (gpu, use) in enumerate(zip(self._node.gpus, self._node.uses, strict=True)):
            option = self._screened[position] or self._rules.weigh(
                container, gpu.traits, use, tallies.get(position, NOTHING)
            )
            if isinstance(option, Code):
                codes[option] += 1
            else:
                found.append((option.key, position))
        if self._request.takes_last:
            found.reverse()
        return [position for _, position in sorted(found, key=itemgetter(0))]

    def _choices(self, candidates: list[int], container: ContainerRequest, tallies: _Tallies) -> Iterator[Choice]:
        """Sets of GPUs for a container. The kubelet hands out again what init containers had, before anything else."""
        again = {position for position, tally in tallies.items() if tally.reusable}
        # Any of them, in no order: so each has to do.
        if len(candidates) < container.gpus or not again <= set(candidates):
            return iter(())
        must = [position for position in candidates if position in again][: container.gpus]
        return policies.choices(self._node, self._request, candidates, must, container.gpus)

    def _take(
        self, container: ContainerRequest, choice: Choice, tallies: _Tallies, total: Tally
    ) -> tuple[_Tallies, Tally]:
        after = dict(tallies)
        memory = cores = 0
        for position in choice:
            demand = checking.demand_of(container, self._node.gpus[position].traits, self._mode)
            after[position] = after.get(position, NOTHING).plus(container.kind, demand.memory_mib, demand.cores)
            memory, cores = memory + demand.memory_mib, cores + demand.cores
        return after, total.plus(container.kind, memory, cores)

    def _build_fit(self, chosen: tuple[Choice, ...]) -> Fit:
        node, request = self._node, self._request
        if request.is_on_same_gpus:
            chosen = chosen * len(request.containers)
        containers = {
            container.name: tuple(self._grant(container, position) for position in choice)
            for container, choice in zip(request.containers, chosen, strict=True)
        }
        kinds = {container.name: container.kind for container in request.containers}
        holding = holding_of(containers, kinds)
        whole, used = sums_of(
            (gpu.traits, use.plus(holding[gpu.uuid]) if gpu.uuid in holding else use)
            for gpu, use, code in zip(node.gpus, node.uses, self._screened, strict=True)
            if code is None
        )
        return Fit(
            containers=containers,
            score=node_score(whole, used, request.weights, request.node_policy),
            holding=holding,
            charge=charge_of(containers, kinds),
        )

    def _grant(self, container: ContainerRequest, position: int) -> Grant:
        gpu = self._node.gpus[position]
        demand = checking.demand_of(container, gpu.traits, self._mode)
        return Grant(gpu.uuid, demand.memory_mib, demand.cores, container.units)


def build_reasons(codes: Counter[Code], found: int, request: PodRequest, step: int, total: int) -> tuple[Reason, ...]:
    """Counts in the order of the checks.

    Args:
        codes: why GPUs do not take a container.
        found: how many take it.
        request: of the pod.
        step: which of its steps found no place.
        total: GPUs of the node.
    """
    if 0 < found < request.steps[step].gpus:
        codes[Code.FEW_FIT] = found
    elif found and not codes[Code.QUOTA]:
        codes[Code.NUMA if request.constraints.numa_bind else Code.FEW_FIT] = found
    return tuple(Reason(code, codes[code], total) for code in Code if codes[code])
