"""Binds pods to the nodes that kube-scheduler chose, each to certain GPUs. Called by `extender`, on the leader only."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from gpushare.domain import manifests
from gpushare.domain.fractions import Decision
from gpushare.domain.manifests import Manifest
from gpushare.errors import ClusterRefused, ClusterUnavailable, Conflict
from gpushare.kube.cluster import Cluster
from gpushare.placement.fitting import fit
from gpushare.placement.quotas import FREE
from gpushare.placement.shapes import PodRequest
from gpushare.scheduler import marks, pods
from gpushare.scheduler.books import Books, Placed, Stage
from gpushare.scheduler.flights import Ticket
from gpushare.scheduler.limits import Limits
from gpushare.scheduler.pods import SeenPod
from gpushare.scheduler.wire import BindCall

_ANSWER_SECONDS: Final = 1.5
"""Of the time that kube-scheduler waits for an answer: so much is kept for sending the Binding."""
_NOT_FOUND: Final = 404
_SHOWN: Final = 3
_POST_SECONDS: Final = 4.0
"""A Binding that is not answered in that time may have been made or not; a leader that was replaced sends none later."""


class Refused(Exception):  # noqa: N818 - the state is the name, as in `errors`
    """The pod is not bound; the text says why, for kube-scheduler's event."""


class Gone(Refused):
    """The pod was deleted: nobody is left who would want to know."""

    def __init__(self) -> None:
        super().__init__("the pod is gone")


class Unclear(Refused):
    """The API server has not answered: the pod may be bound. What was reserved for it stays reserved until that is known."""


@dataclass(slots=True)
class Counts:
    """What became of the pods that were to be bound."""

    bound: int = 0
    refused: int = 0


class Binder:
    """Decides, reserves, waits for its turn on the node, and binds."""

    def __init__(
        self,
        cluster: Cluster,
        books: Books,
        limits: Limits,
        *,
        read: Callable[[Manifest], PodRequest | None],
        refused: Callable[[BindCall, str], None],
        seconds: float,
    ) -> None:
        """What it needs.

        Args:
            cluster: where pods are bound.
            books: what there is, and who holds it.
            limits: quotas of namespaces.
            read: what a pod asks for; raises Refused.
            refused: is told of every pod that is not bound, and why.
            seconds: how long whoever asks waits for an answer.
        """
        self._cluster = cluster
        self._books = books
        self._limits = limits
        self._read = read
        self._seconds = seconds
        self._refused = refused
        self._running: dict[str, tuple[str, asyncio.Task[None]]] = {}
        """By uid of the pod: the node, and the attempt."""
        self.counts = Counts()

    async def bind(self, call: BindCall) -> None:
        """Binds a pod. Asked twice, it does so once: the second call waits for the first one's attempt, or finds it done.

        Raises:
            Refused: the pod is not bound, or it is not known whether it is.
        """
        node, attempt = self._running.get(call.uid, (call.node, None))
        if node != call.node:
            raise Refused(f"the pod is just being bound to {node}")
        if attempt is None:
            attempt = asyncio.create_task(self._bind(call))
            self._running[call.uid] = (call.node, attempt)
            attempt.add_done_callback(lambda _: self._running.pop(call.uid, None))
        try:
            await _wait_for(attempt)
        except Refused as refused:
            self.counts.refused += 1
            if not isinstance(refused, Gone):
                self._refused(call, str(refused))
            raise
        self.counts.bound += 1

    async def stop(self) -> None:
        """Ends every attempt: somebody else decides from now on."""
        attempts = [attempt for _, attempt in self._running.values()]
        for attempt in attempts:
            attempt.cancel()
        if attempts:
            await asyncio.wait(attempts)

    async def check_reservations(self, doubtful: frozenset[str]) -> frozenset[str]:
        """Finds out what became of Bindings of which we have not heard. Called at intervals.

        Returns:
            Reservations that nobody is working on, to be given to the next call: one that is such for the first time may be
            told by the watch in the next moment.
        """
        idle = frozenset(
            uid
            for uid, placed in self._books.pods.items()
            if placed.stage is Stage.RESERVED and uid not in self._running
        )
        for placed in [self._books.pods[uid] for uid in idle & doubtful]:
            pod = await self._cluster.get(manifests.POD, placed.name, placed.namespace)
            if pod is not None and pod["metadata"]["uid"] == placed.uid and pod["spec"].get("nodeName"):
                self._see(pod)
            elif placed.uid not in self._running:
                self._books.release(placed.uid)
        return idle

    async def _bind(self, call: BindCall) -> None:
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._seconds
        pod = await self._get(call)
        if self._is_there(pod, call):
            return
        # What an earlier attempt has reserved, perhaps on another node.
        self._books.release(call.uid)
        request = self._read(pod)
        if request is None:
            await self._post(call, {}, deadline)
            return
        self._books.reserve(self._decide(call, request))
        try:
            await self._wait(call, Ticket(request.shape, request.is_uniform), deadline)
            # Anew: while it waited, a pod may have been given other GPUs than were decided, or the node may have changed.
            placed = self._decide(call, request)
            self._books.reserve(placed)
            await self._post(call, marks.build(placed, pod, self._books.nodes[call.node]), deadline)
        except Unclear:
            raise
        except (Refused, asyncio.CancelledError):
            self._books.release(call.uid)
            raise

    async def _wait(self, call: BindCall, ticket: Ticket, deadline: float) -> None:
        try:
            await self._books.flights.wait(call.node, call.uid, ticket, deadline - _ANSWER_SECONDS)
        except TimeoutError:
            ahead = sorted(str(self._books.pods[uid]) for uid in self._books.flights.aboard(call.node))
            raise Refused(
                f"{call.node} is still starting other pods with GPUs, {', '.join(ahead[:_SHOWN])}; this one is tried again"
            ) from None
        seen = self._books.pods.get(call.uid)
        if seen is not None and (seen.node, seen.stage) != (call.node, Stage.BOUND) and seen.stage > Stage.RESERVED:
            # Bound by an earlier attempt of which nothing was heard: it is not on its way to this node, or no longer.
            self._books.flights.leave(call.node, call.uid)

    def _decide(self, call: BindCall, request: PodRequest) -> Placed:
        state, before = self._books.nodes.get(call.node), self._books.pods.get(call.uid)
        if before is not None and before.stage > Stage.RESERVED:
            raise Refused(f"the pod is on {before.node} already")
        if state is None:
            raise Refused(f"nothing is known of the GPUs of {call.node}")
        room = self._limits.room(call.namespace, without=before.charge if before else FREE)
        found = fit(state.without_pod(call.uid), request, room)
        if found.containers is None:
            raise Refused(f"{call.node}: {found.message}")
        return Placed(
            uid=call.uid,
            namespace=call.namespace,
            name=call.name,
            node=call.node,
            decision=Decision(
                pod_uid=call.uid, dialect=request.dialect, shape=request.shape, containers=found.containers
            ),
            kinds={container.name: container.kind for container in request.containers},
            stage=Stage.RESERVED,
        )

    async def _post(self, call: BindCall, annotations: Mapping[str, str], deadline: float) -> None:
        metadata = {
            "name": call.name,
            "namespace": call.namespace,
            "uid": call.uid,
            # The API server merges them into the pod in the same write that binds it.
            "annotations": annotations,
        }
        target = {"apiVersion": manifests.NODE.api_version, "kind": manifests.NODE.kind, "name": call.node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        now = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(min(deadline, now + _POST_SECONDS)):
                await self._cluster.create(binding, subresource="binding", name=call.name)
        except Conflict as error:
            if not self._is_there(await self._get(call), call):
                raise Refused(f"the pod was changed by somebody else: {error}") from error
        except ClusterRefused as error:
            if error.code == _NOT_FOUND:
                raise Gone from error
            raise Refused(f"the API server refuses the Binding: {error}") from error
        except (ClusterUnavailable, TimeoutError) as error:
            raise Unclear(
                f"the API server has not answered the Binding: {str(error) or 'no answer in time'}"
            ) from error

    def _is_there(self, pod: Manifest, call: BindCall) -> bool:
        """Whether the pod is bound to the node already, as by an earlier attempt whose answer was lost."""
        node = pod["spec"].get("nodeName")
        if node and node != call.node:
            raise Refused(f"the pod is on {node} already")
        if node:
            self._see(pod)
        return bool(node)

    def _see(self, pod: Manifest) -> None:
        if (kept := pods.trim(pod, ())) is not None:
            self._books.see_pod(SeenPod.of(kept))

    async def _get(self, call: BindCall) -> Manifest:
        try:
            pod = await self._cluster.get(manifests.POD, call.name, call.namespace)
        except (ClusterUnavailable, ClusterRefused) as error:
            raise Refused(f"the pod cannot be read: {error}") from error
        if pod is None or pod["metadata"]["uid"] != call.uid:
            raise Gone
        return pod


async def _wait_for(attempt: asyncio.Task[None]) -> None:
    """Waits for an attempt, which goes on where one of those who asked hangs up. Raises Refused also where `stop` ends it."""
    try:
        await asyncio.shield(attempt)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if attempt.cancelled() and task is not None and not task.cancelling():
            raise Refused("this replica no longer decides; the pod is tried again") from None
        raise
