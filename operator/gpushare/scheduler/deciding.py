"""Which nodes take a pod, in which order, and who would have to go: filter, prioritize, preempt, as values. Used by `extender`.

None of it changes the books: kube-scheduler asks about more pods than it binds, and cluster autoscalers ask about nodes
that do not exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gpushare.domain.manifests import Manifest
from gpushare.placement.fitting import fit
from gpushare.placement.index import Answer, FitIndex
from gpushare.placement.nodes import NodeState
from gpushare.placement.preempting import Removable, choose_victims
from gpushare.placement.quotas import FREE, Quota
from gpushare.placement.reasons import Code
from gpushare.placement.requests import read_request
from gpushare.placement.scoring import build_priorities
from gpushare.placement.settings import RequestSettings
from gpushare.placement.shapes import PodRequest
from gpushare.scheduler.binding import Refused
from gpushare.scheduler.books import Books, Stage
from gpushare.scheduler.future_nodes import read_node
from gpushare.scheduler.limits import Limits
from gpushare.scheduler.wire import Filtered, NodesCall, PreemptCall, Victims

_HOPELESS: Final = frozenset(
    code.value
    for code in (
        Code.UNKNOWN_NODE,
        Code.AGENT_NOT_READY,
        Code.NOT_APPLIED,
        Code.NO_FRACTIONS,
        Code.DIALECT,
        Code.COMPUTE_NOT_SERVED,
    )
)
"""Reasons that no eviction changes, so that kube-scheduler need not try."""
_LONGEST: Final = 500


class Decider:
    """Answers from the books as they are."""

    def __init__(self, books: Books, index: FitIndex, limits: Limits, settings: RequestSettings) -> None:
        self._books = books
        self._index = index
        self._limits = limits
        self._settings = settings

    def read(self, pod: Manifest) -> PodRequest | None:
        """What a pod asks for; None where it does not concern us.

        Raises:
            Refused: it asks for something that cannot be, as a pod can that admission has not seen.
        """
        read = read_request(pod, self._settings)
        if read.problems:
            raise Refused("; ".join(map(str, read.problems))[:_LONGEST])
        return read.request

    def filter(self, call: NodesCall) -> Filtered:
        """The nodes that take a pod, and why the others do not."""
        try:
            request = self.read(call.pod)
        except Refused as refused:
            return Filtered(fitting=(), unresolvable=dict.fromkeys(call.names, str(refused)))
        if request is None:
            return Filtered(fitting=call.names)
        answer = self._ask(call, request)
        unresolvable = {name: reason for name, reason in answer.failed.items() if reason in _HOPELESS}
        failed = {name: reason for name, reason in answer.failed.items() if reason not in _HOPELESS}
        return Filtered(fitting=list(answer.scores), failed=failed, unresolvable=unresolvable)

    def prioritize(self, call: NodesCall) -> Mapping[str, int]:
        """0 to 10 for each node; all alike where the pod does not concern us. Nodes that do not take it have 0."""
        try:
            request = self.read(call.pod)
        except Refused:
            request = None
        scores = build_priorities(self._ask(call, request).scores) if request is not None else {}
        return scores if len(scores) == len(call.names) else {name: scores.get(name, 0) for name in call.names}

    def preempt(self, call: PreemptCall) -> Mapping[str, Victims]:
        """Those nodes on which the evictions help, some with more of them. Only less important pods are ever added."""
        request = self.read(call.pod)
        if request is None:
            return call.victims
        room = self._room(call.pod)
        found = {
            node: self._with_more(node, victims, request, room, int(call.pod["spec"].get("priority") or 0))
            for node, victims in call.victims.items()
        }
        return {node: victims for node, victims in found.items() if victims is not None}

    def _with_more(
        self, node: str, victims: Victims, request: PodRequest, room: Quota, priority: int
    ) -> Victims | None:
        left = self._books.nodes.get(node)
        if left is None:
            return None
        for uid in victims.uids:
            left = left.without_pod(uid)
        if fit(left, request, room).containers is not None:
            return victims
        others = (self._books.pods[uid] for uid in left.pods)
        more = choose_victims(
            left,
            request,
            (
                Removable(uid=pod.uid, priority=pod.priority, started=pod.started)
                for pod in others
                if pod.priority < priority
            ),
            room,
        )
        if more is None:
            return None
        return Victims(uids=(*victims.uids, *(pod.uid for pod in more)), violations=victims.violations)

    def _ask(self, call: NodesCall, request: PodRequest) -> Answer:
        room = self._room(call.pod)
        answer = self._index.find(request, call.names, room)
        own = self._books.pods.get(call.pod["metadata"].get("uid", ""))
        if own is not None and own.stage is Stage.RESERVED and own.node in answer.failed:
            # An attempt whose end is not known yet: what is reserved there is for this very pod.
            node = self._books.nodes.get(own.node)
            self._ask_again(answer, node and node.without_pod(own.uid), request, room)
        for name, whole in (call.nodes or {}).items():
            if answer.failed.get(name) == Code.UNKNOWN_NODE.value:
                self._ask_again(answer, read_node(whole), request, room)
        return answer

    def _ask_again(self, answer: Answer, node: NodeState | None, request: PodRequest, room: Quota) -> None:
        """Asks a node of which the index knows less than this."""
        if node is None:
            return
        found = fit(node, request, room)
        if found.containers is None:
            answer.failed[node.name] = found.message
        else:
            del answer.failed[node.name]
            answer.scores[node.name] = found.score

    def _room(self, pod: Manifest) -> Quota:
        metadata = pod["metadata"]
        own = self._books.pods.get(metadata.get("uid", ""))
        return self._limits.room(metadata.get("namespace", ""), without=own.charge if own else FREE)
