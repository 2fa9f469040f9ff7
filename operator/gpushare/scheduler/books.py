"""What every GPU gives out and who holds what of it: the scheduler's picture, kept up from watches and from its own decisions.

Level-triggered: whatever is told again, or in another order, ends in the same books. Called by `following` with what
exists, and by `binding` with what is about to exist.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final

from gpushare.domain.fractions import Decision
from gpushare.domain.gpunode import GPUNode
from gpushare.placement.counting import charge_of, holding_of
from gpushare.placement.gpus import Holding
from gpushare.placement.nodes import NodeState
from gpushare.placement.quotas import FREE, Charge
from gpushare.placement.shapes import Kind
from gpushare.scheduler.flights import Flights, Ticket
from gpushare.scheduler.pods import Grants, SeenPod, correct, read_allocations, read_others, read_whole

_ENDED: Final = 10_000
"""Uids that are remembered after their pods' end: more than end while all pods of a large cluster are listed."""


class Stage(IntEnum):
    """How far a pod has come, each further than the one before."""

    RESERVED = 1
    """Decided by us; the API server may or may not have heard of it."""
    BOUND = 2
    """Seen on its node."""
    CONFIRMED = 3
    """Its devices are given out: the agent or the kubelet says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A pod that holds, or is about to hold, a part of a node's GPUs."""

    uid: str
    namespace: str
    name: str
    node: str
    decision: Decision | None
    """None: somebody else bound it, and only its agent knows what it holds."""
    kinds: Mapping[str, Kind]
    stage: Stage
    priority: int = 0
    started: str = ""
    containers: Grants = field(default_factory=dict)
    """What it holds: as decided, corrected by what its agent says."""
    holding: Holding = field(default_factory=dict)
    """That by GPU."""
    charge: Charge = FREE
    """That for the quota of its namespace."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(slots=True)
class Findings:
    """Things that only people can judge. Called when they are first seen."""

    corrected: Callable[[Placed], None] = lambda _: None
    """The kubelet gave a pod other GPUs than those decided."""
    strange: Callable[[Placed], None] = lambda _: None
    """A pod was bound that we did not decide about."""


class Books:
    """Nodes and pods. Belongs to one event loop; nothing in it waits, so that what is read together fits together."""

    def __init__(self, flights: Flights, changed: Callable[[NodeState], None], gone: Callable[[str], None]) -> None:
        """`changed` and `gone` are told of each node whose GPUs, or what is free of them, are others than before."""
        self.nodes: dict[str, NodeState] = {}
        self.pods: dict[str, Placed] = {}
        self.charges: dict[str, Charge] = {}
        """What the pods of each namespace take, all GPUs together."""
        self.findings = Findings()
        self.flights = flights
        self._changed = changed
        self._gone = gone
        self._pods_of: defaultdict[str, set[str]] = defaultdict(set)
        self._ended: dict[str, None] = {}
        self._annotations: dict[str, Mapping[str, str]] = {}
        self._allocations: dict[str, Mapping[str, Grants]] = {}
        self._whole: dict[str, Mapping[str, Grants]] = {}

    # What exists.

    @property
    def annotated(self) -> frozenset[str]:
        """Nodes that have annotations which concern their GPUs."""
        return frozenset(self._annotations)

    def see_annotations(self, node: str, annotations: Mapping[str, str]) -> bool:
        """Takes those annotations of a Node that concern its GPUs. Returns whether they are news of a node that we know.

        The GPUNode is to be read again then: little of it is kept.
        """
        before = self._annotations.get(node, {})
        if annotations:
            self._annotations[node] = annotations
        else:
            self._annotations.pop(node, None)
        return before != annotations and node in self.nodes

    def see_gpu_node(self, gpu_node: GPUNode) -> None:
        """Takes what the agent says of a node: what there is, and who holds what of it."""
        name, status = gpu_node.name, gpu_node.status
        self._allocations[name], self._whole[name] = read_allocations(status), read_whole(status)
        judged = [self._judge(self.pods[uid]) for uid in self._pods_of.get(name, ())]
        for placed in judged:
            self._keep(placed)
        holdings = {placed.uid: placed.holding for placed in judged}
        state = NodeState.of(gpu_node, self._annotations.get(name, {}), holdings, read_others(status))
        if status.applied_revision != (gpu_node.config.revision if gpu_node.config else None):
            state = replace(state, is_settled=False)
        self._put(state)
        for placed in judged:
            self._track(placed)

    def drop_gpu_node(self, name: str) -> None:
        """A GPUNode is gone, and with it its node. Its pods stay known, as they were decided, until they are gone too."""
        self._allocations.pop(name, None)
        self._whole.pop(name, None)
        for uid in self._pods_of.get(name, ()):
            self._keep(self._judge(self.pods[uid]))
        if self.nodes.pop(name, None) is not None:
            self._gone(name)

    def drop_other_gpu_nodes(self, existing: AbstractSet[str]) -> None:
        """Only these exist, by name."""
        for name in self.nodes.keys() - existing:
            self.drop_gpu_node(name)

    def see_pod(self, pod: SeenPod) -> None:
        """Takes a pod that is bound and has not ended. One whose end is known was read before it: it stays ended."""
        if pod.uid in self._ended:
            return
        before = self.pods.get(pod.uid)
        stage = Stage.CONFIRMED if pod.started else Stage.BOUND
        if before is not None and (before.node, before.decision) != (pod.node, pod.decision):
            # Bound by an attempt of which nothing was heard, not by the one that the books know.
            self.drop_pod(pod.uid)
        elif before is not None and before.stage >= stage and before.started == pod.started:
            return
        self._place(
            Placed(
                uid=pod.uid,
                namespace=pod.namespace,
                name=pod.name,
                node=pod.node,
                decision=pod.decision,
                kinds=pod.kinds,
                stage=max(stage, before.stage) if before else stage,
                priority=pod.priority,
                started=pod.started,
            )
        )
        if before is None:
            self.findings.strange(self.pods[pod.uid])

    def drop_pod(self, uid: str) -> None:
        """A pod has gone, has ended, or is not going to come: what it held is free."""
        placed = self.pods.pop(uid, None)
        if placed is None:
            return
        on_node = self._pods_of[placed.node]
        on_node.discard(uid)
        if not on_node:
            # Or it would grow for ever, since nodes come and go.
            del self._pods_of[placed.node]
        self._charge(placed, -1)
        if (state := self.nodes.get(placed.node)) is not None:
            self._put(state.without_pod(uid))
        # Last: those who may go on then find the room that was left.
        self.flights.leave(placed.node, uid)

    def end_pod(self, uid: str) -> None:
        """A pod has gone or has ended, as the watch tells. A list or an answer that was on its way may still show it."""
        self._ended[uid] = None
        if len(self._ended) > _ENDED:
            del self._ended[next(iter(self._ended))]
        self.drop_pod(uid)

    def drop_other_pods(self, existing: AbstractSet[str]) -> None:
        """Only these are bound and have not ended, by uid. One that is just reserved may have been bound meanwhile: it stays."""
        for placed in tuple(self.pods.values()):
            if placed.uid not in existing and placed.stage > Stage.RESERVED:
                self.drop_pod(placed.uid)

    # What is about to exist.

    def reserve(self, placed: Placed) -> None:
        """Takes a decision of ours, before the API server hears of it."""
        self._place(placed)

    def release(self, uid: str) -> None:
        """Gives up a reservation. A pod that was seen on its node meanwhile stays."""
        placed = self.pods.get(uid)
        if placed is not None and placed.stage is Stage.RESERVED:
            self.drop_pod(uid)

    # What holds together.

    def _place(self, placed: Placed) -> None:
        state = self.nodes.get(placed.node)
        judged = self._judge(placed)
        if self._keep(judged) and state is not None:
            self._put(state.with_pod(judged.uid, judged.holding))
        self._track(judged)

    def _judge(self, placed: Placed) -> Placed:
        """What a pod holds, and how far it has come, by what its agent says."""
        actual = self._allocations.get(placed.node, {}).get(placed.uid, {})
        stage = placed.stage
        if placed.decision is None:
            # Nothing holds it to a part, so that nobody else may be on its GPUs.
            containers = self._whole.get(placed.node, {}).get(str(placed), {})
        else:
            decided = placed.decision.containers
            containers = correct(decided, actual)
            # Init containers that have ended are told of no more.
            lasting = [name for name in decided if placed.kinds.get(name) is not Kind.INIT]
            # One that only we know of stays reserved, or a list that is older than its Binding would take it for gone.
            if stage > Stage.RESERVED and lasting and all(name in actual for name in lasting):
                stage = Stage.CONFIRMED
        holding = holding_of(containers, placed.kinds)
        charge = charge_of(containers, placed.kinds) if placed.decision is not None else FREE
        return replace(placed, stage=stage, containers=containers, holding=holding, charge=charge)

    def _keep(self, placed: Placed) -> bool:
        """Replaces a pod. Returns whether it holds something else than before, or is new."""
        before = self.pods.get(placed.uid)
        self.pods[placed.uid] = placed
        self._pods_of[placed.node].add(placed.uid)
        is_news = before is None or before.containers != placed.containers
        if is_news and placed.decision is not None and placed.containers != placed.decision.containers:
            self.findings.corrected(placed)
        if before is not None and before.holding == placed.holding:
            return False
        if before is not None:
            self._charge(before, -1)
        self._charge(placed, 1)
        return True

    def _track(self, placed: Placed) -> None:
        """Says whether a pod is on its way, as far as that was seen; for one that is reserved, `binding` says so."""
        if placed.stage is Stage.CONFIRMED:
            self.flights.leave(placed.node, placed.uid)
        elif placed.stage is Stage.BOUND and self._serves_fractions(placed.node):
            self.flights.board(placed.node, placed.uid, ticket_of(placed.decision))

    def _serves_fractions(self, node: str) -> bool:
        return node in self.nodes and self.nodes[node].mode is not None

    def _put(self, state: NodeState) -> None:
        if self.nodes.get(state.name) != state:
            self.nodes[state.name] = state
            self._changed(state)

    def _charge(self, placed: Placed, sign: int) -> None:
        used, more = self.charges.get(placed.namespace, FREE), placed.charge
        left = Charge(used.memory_mib + sign * more.memory_mib, used.cores + sign * more.cores)
        if left == FREE:
            self.charges.pop(placed.namespace, None)
        else:
            self.charges[placed.namespace] = left


def ticket_of(decision: Decision | None) -> Ticket:
    """With whom a pod goes that is found on its way: one without a decision, which might be taken for any other, with nobody."""
    if decision is None:
        return Ticket("", is_uniform=False)
    tuples = {
        tuple((grant.memory_mib, grant.cores, grant.units) for grant in grants)
        for grants in decision.containers.values()
    }
    return Ticket(decision.shape, is_uniform=len(tuples) == 1)
