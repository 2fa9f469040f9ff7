"""Tells people what only they can judge: Events on pods, lines in the log, counts. Used by `running`."""

from __future__ import annotations

import logging
from collections.abc import Callable

from gpushare.domain import manifests
from gpushare.domain.events import EventNote, EventType
from gpushare.domain.manifests import ObjectKey
from gpushare.kube.events import EventPoster
from gpushare.scheduler.books import Books, Placed
from gpushare.scheduler.wire import BindCall


class Telling:
    """What was found while this replica led. The others see the same, and say nothing."""

    def __init__(self, books: Books, poster: EventPoster, is_leading: Callable[[], bool], log: logging.Logger) -> None:
        self._books = books
        self._poster = poster
        self._is_leading = is_leading
        self._log = log
        self.corrections = 0
        """Pods that were given other GPUs than those decided."""
        self.strangers = 0
        """Pods with GPUs on nodes that serve fractions, about which somebody else has decided, or nobody."""

    def refused(self, call: BindCall, reason: str) -> None:
        """A pod was not bound."""
        self._log.info("not bound", extra={"pod": str(call), "node": call.node, "reason": reason})
        key = ObjectKey(manifests.POD, call.name, call.namespace)
        self._post(key, call.uid, "GPUNotGranted", reason)

    def corrected(self, placed: Placed) -> None:
        """The kubelet chose other GPUs than those decided; the books follow it."""
        if not self._is_leading() or placed.decision is None:
            return
        self.corrections += 1
        found = {name: [grant.uuid for grant in grants] for name, grants in placed.containers.items()}
        wanted = {name: [grant.uuid for grant in grants] for name, grants in placed.decision.containers.items()}
        different = [name for name in found if found[name] != wanted[name]]
        message = "; ".join(
            f"container {name} has {', '.join(found[name])} instead of {', '.join(wanted[name])}" for name in different
        )
        self._tell_of(placed, "GPUCorrected", f"the kubelet chose other GPUs than planned: {message}")

    def strange(self, placed: Placed) -> None:
        """A pod was bound that this leader did not decide about."""
        node = self._books.nodes.get(placed.node)
        if not self._is_leading() or node is None or node.mode is None:
            return
        self.strangers += 1
        if placed.decision is None:
            message = (
                f"bound to {placed.node} without a decision about its GPU, by a scheduler that does not ask gpushare "
                "scheduler; the node's agent gives it none"
            )
        else:
            message = (
                f"another gpushare scheduler has decided about this pod on {placed.node}: two that do not share one Lease "
                "give the same GPU away twice; stop one of them"
            )
        self._tell_of(placed, "GPUDecidedElsewhere", message)

    def _tell_of(self, placed: Placed, reason: str, message: str) -> None:
        self._log.warning(message, extra={"pod": str(placed), "node": placed.node})
        self._post(ObjectKey(manifests.POD, placed.name, placed.namespace), placed.uid, reason, message)

    def _post(self, key: ObjectKey, uid: str, reason: str, message: str) -> None:
        self._poster.post([EventNote(regarding=key, uid=uid, reason=reason, type=EventType.WARNING, message=message)])
