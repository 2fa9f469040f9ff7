"""What nodes look like, and what they answer to each shape of pod. Kept by `index`, so that alike nodes are asked once.

Two levels: nodes that look the same share their answers, and nodes that differ still share what is true of single GPUs.
A cluster has few kinds of GPUs, each with some tens of uses, but thousands of ways to combine eight of them.
"""

from __future__ import annotations

from collections import Counter
from operator import itemgetter
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from gpushare.domain.fractions import FractionMode
from gpushare.placement import checking
from gpushare.placement.counting import NOTHING
from gpushare.placement.fitting import build_reasons, fit
from gpushare.placement.gpus import Traits, Use
from gpushare.placement.nodes import NodeState
from gpushare.placement.quotas import FREE, Charge
from gpushare.placement.reasons import Code, build_message
from gpushare.placement.scoring import Sums, node_score, sums_of
from gpushare.placement.shapes import PodRequest
from gpushare.placement.weighing import Option, Rules

_MOST_SHAPES: Final = 64
"""Shapes whose answers are kept for one look, and for one GPU: some 100 MiB if thousands of nodes all look different."""

_KEY: Final = itemgetter(0)
"""Of options: by what they are compared."""


class Verdict(NamedTuple):
    """What all nodes of one look answer to all pods of one shape."""

    message: str | None
    """Why it does not fit; None: it does."""
    score: float = 0.0
    charge: Charge = FREE
    """Of the namespace's quota."""


class _Card:
    """GPUs with equal traits and equal use."""

    __slots__ = ("__weakref__", "options", "traits", "use")

    def __init__(self, traits: Traits, use: Use) -> None:
        self.traits = traits
        self.use = use
        self.options: dict[str, tuple[Option | Code, bool]] = {}
        """By shape: the judgement, and whether the pod may have such a GPU at all. Of one whose UUID the pod does not name."""

    def weigh(self, request: PodRequest, mode: FractionMode) -> tuple[Option | Code, bool]:
        """Judges these GPUs, and keeps the judgement. Only of simple requests."""
        code = checking.check_constraints("", self.traits, request.constraints, mode.isolation)
        option = code or Rules.of(request, mode).weigh(request.steps[0], self.traits, self.use, NOTHING)
        if len(self.options) >= _MOST_SHAPES:
            self.options.clear()
        self.options[request.shape] = option, code is None
        return self.options[request.shape]


class Look:
    """Nodes that are alike to every pod that names none of their GPUs."""

    __slots__ = ("__weakref__", "_cards", "_sums", "verdicts")

    def __init__(self, cards: tuple[_Card, ...]) -> None:
        self.verdicts: dict[str, Verdict] = {}
        """By shape."""
        self._cards = cards
        self._sums = sums_of((card.traits, card.use) for card in cards)

    def ask(self, node: NodeState, request: PodRequest) -> Verdict:
        """Asks one of the nodes, and keeps the answer for all of them."""
        verdict = self._judge(node, request) if request.is_simple else _ask_in_full(node, request)
        if len(self.verdicts) >= _MOST_SHAPES:
            self.verdicts.clear()
        self.verdicts[request.shape] = verdict
        return verdict

    def _judge(self, node: NodeState, request: PodRequest) -> Verdict:
        """The same as `fit`, for one container on one GPU: nothing is asked about a GPU that was asked about one like it."""
        mode = node.mode
        if mode is None or checking.check_node(node, request) is not None:
            return _ask_in_full(node, request)
        judged = [card.options.get(request.shape) or card.weigh(request, mode) for card in self._cards]
        options = [option for option, _ in judged if isinstance(option, Option)]
        if not options:
            codes = Counter(option for option, _ in judged if isinstance(option, Code))
            return Verdict(build_message(build_reasons(codes, 0, request, 0, len(judged))))
        if request.takes_last:
            options.reverse()
        demand = min(options, key=_KEY).demand
        whole, used = self._sums
        # Most pods may have any GPU; what is free is not asked about here.
        if len(options) < len(judged) and not all(is_allowed for _, is_allowed in judged):
            cards = zip(self._cards, judged, strict=True)
            whole, used = sums_of((card.traits, card.use) for card, (_, is_allowed) in cards if is_allowed)
        used = Sums(used.slots + 1, used.cores + demand.cores, used.memory_mib + demand.memory_mib)
        score = node_score(whole, used, request.weights, request.node_policy)
        return Verdict(None, score, Charge(demand.memory_mib, demand.cores) if request.is_charged else FREE)


class Album:
    """All looks that some node has, and the cards in them. What no node shows any more goes by itself."""

    def __init__(self) -> None:
        self._looks: WeakValueDictionary[tuple[object, ...], Look] = WeakValueDictionary()
        self._cards: dict[FractionMode | None, WeakValueDictionary[tuple[Traits, Use], _Card]] = {}

    def __len__(self) -> int:
        return len(self._looks)

    def look_of(self, node: NodeState) -> Look:
        """The look of a node; the same object as that of every node which looks the same."""
        stands = node.is_ready, node.is_settled
        key = (node.mode, stands, tuple(gpu.traits for gpu in node.gpus), node.uses, node.topology)
        look = self._looks.get(key)
        if look is None:
            known = self._cards.setdefault(node.mode, WeakValueDictionary())
            cards = []
            for gpu, use in zip(node.gpus, node.uses, strict=True):
                card = known.get((gpu.traits, use))
                if card is None:
                    card = known[gpu.traits, use] = _Card(gpu.traits, use)
                cards.append(card)
            look = self._looks[key] = Look(tuple(cards))
        return look


def _ask_in_full(node: NodeState, request: PodRequest) -> Verdict:
    found = fit(node, request)
    return Verdict(None if found.containers is not None else found.message, found.score, found.charge)
