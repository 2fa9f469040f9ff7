"""All nodes of a cluster, and which of them take a pod, answered in milliseconds for thousands. Kept by the extender.

Nodes that look the same give the same answer, so each look is asked once about each shape of pod, and the answer stays as
long as a node looks so. A cluster has few looks: what its machines are, times what is on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from gpushare.placement.fitting import Fit, fit
from gpushare.placement.looks import Album, Look
from gpushare.placement.nodes import NodeState
from gpushare.placement.quotas import UNLIMITED, Quota
from gpushare.placement.reasons import Code, shorten
from gpushare.placement.shapes import PodRequest


@dataclass(frozen=True, slots=True)
class Answer:
    """Which nodes take a pod."""

    scores: dict[str, float] = field(default_factory=dict)
    """Those that do, with 0 to 10."""
    failed: dict[str, str] = field(default_factory=dict)
    """Those that do not, with the reason in one line; few different ones, however many nodes there are."""


class FitIndex:
    """The nodes, as the books last put them. Not for several threads at once."""

    def __init__(self) -> None:
        self._nodes: dict[str, NodeState] = {}
        self._looks: dict[str, Look] = {}
        self._owners: dict[str, str] = {}
        """Names of nodes by the UUIDs of their GPUs."""
        self.album = Album()

    def put(self, node: NodeState) -> None:
        """Takes a node, or its new state."""
        before = self._nodes.get(node.name)
        if before is None or before.gpus is not node.gpus:
            self._disown(node.name)
            self._owners.update((gpu.uuid, node.name) for gpu in node.gpus)
        self._nodes[node.name] = node
        self._looks[node.name] = self.album.look_of(node)

    def remove(self, name: str) -> None:
        """Forgets a node; one that is not known is no error."""
        self._disown(name)
        self._nodes.pop(name, None)
        self._looks.pop(name, None)

    def get(self, name: str) -> NodeState | None:
        """The node as it was put last."""
        return self._nodes.get(name)

    def __iter__(self) -> Iterator[NodeState]:
        return iter(self._nodes.values())

    def __len__(self) -> int:
        return len(self._nodes)

    def fit(self, name: str, request: PodRequest, room: Quota = UNLIMITED) -> Fit | None:
        """The answer of one node in full; None: nothing is known of it."""
        node = self._nodes.get(name)
        return None if node is None else fit(node, request, room)

    def find(self, request: PodRequest, names: Iterable[str], room: Quota = UNLIMITED) -> Answer:
        """Asks many nodes. The same answers as `fit` of each; a node that does not fit anyway says nothing of the quota."""
        named = {self._owners.get(uuid) for uuid in request.named_uuids}
        looks, shape, answer = self._looks, request.shape, Answer()
        scores, failed = answer.scores, answer.failed
        for name in names:
            look = looks.get(name)
            if look is None:
                failed[name] = Code.UNKNOWN_NODE.value
                continue
            if name in named:
                self._find_exactly(name, request, room, answer)
                continue
            verdict = look.verdicts.get(shape) or look.ask(self._nodes[name], request)
            if verdict.message is not None:
                failed[name] = verdict.message
            elif room is not UNLIMITED and not room.takes(verdict.charge):
                # On a smaller GPU the same percentage is less memory, which the quota may allow.
                self._find_exactly(name, request, room, answer)
            else:
                scores[name] = verdict.score
        return Answer(scores, shorten(failed))

    def _find_exactly(self, name: str, request: PodRequest, room: Quota, answer: Answer) -> None:
        found = fit(self._nodes[name], request, room)
        if found.containers is None:
            answer.failed[name] = found.message
        else:
            answer.scores[name] = found.score

    def _disown(self, name: str) -> None:
        node = self._nodes.get(name)
        for gpu in node.gpus if node is not None else ():
            # Not one that has moved into another machine since.
            if self._owners.get(gpu.uuid) == name:
                del self._owners[gpu.uuid]
