"""Pods on their way to a node: given to it, and not yet confirmed by its agent. Used by `binding` and `books`.

The kubelet does not say for which pod it asks for devices. So only pods that may be taken for each other are on their way
to one node together; any other pod waits until it is the only one.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple


class Ticket(NamedTuple):
    """What decides with whom a pod may be on its way."""

    shape: str
    is_uniform: bool
    """Whether all containers of the pod get the same; else even two pods of one shape cannot be told apart."""

    def goes_with(self, other: Ticket) -> bool:
        """Whether two pods may be on their way together."""
        return self.is_uniform and other.is_uniform and self.shape == other.shape


@dataclass(slots=True, eq=False)
class _Waiting:
    uid: str
    ticket: Ticket
    boarded: asyncio.Future[None]


@dataclass(slots=True)
class _Flight:
    """One node."""

    aboard: dict[str, Ticket] = field(default_factory=dict)
    queue: list[_Waiting] = field(default_factory=list)

    def takes(self, ticket: Ticket) -> bool:
        return all(ticket.goes_with(other) for other in self.aboard.values())


class Flights:
    """Of all nodes. Belongs to one event loop."""

    def __init__(self) -> None:
        self._flights: defaultdict[str, _Flight] = defaultdict(_Flight)

    def aboard(self, node: str) -> frozenset[str]:
        """Uids of the pods that are on their way to a node."""
        return frozenset(self._flights[node].aboard) if node in self._flights else frozenset()

    @property
    def counts(self) -> tuple[int, int]:
        """How many pods are on their way, and how many wait."""
        flights = self._flights.values()
        return sum(len(flight.aboard) for flight in flights), sum(len(flight.queue) for flight in flights)

    def board(self, node: str, uid: str, ticket: Ticket) -> None:
        """Says that a pod is on its way, whoever sent it there."""
        self._flights[node].aboard[uid] = ticket

    def leave(self, node: str, uid: str) -> None:
        """Says that a pod is no longer on its way: it was confirmed, or it will not come. Lets those who wait go on."""
        flight = self._flights.get(node)
        if flight is not None and flight.aboard.pop(uid, None) is not None:
            self._go_on(node)

    def _go_on(self, node: str) -> None:
        flight = self._flights[node]
        # The first who waits, and everyone who may go with it, even those from behind another who may not: for that one
        # nothing is lost by it, as they all go at once.
        for waiting in tuple(flight.queue) if not flight.aboard else ():
            # One that has given up stands in the queue until its turn to run comes.
            if not waiting.boarded.done() and flight.takes(waiting.ticket):
                flight.aboard[waiting.uid] = waiting.ticket
                flight.queue.remove(waiting)
                waiting.boarded.set_result(None)
        if not flight.aboard and not flight.queue:
            del self._flights[node]

    async def wait(self, node: str, uid: str, ticket: Ticket, deadline: float) -> None:
        """Returns once the pod is on its way.

        A pod that could go along does not overtake one that waits, or replicas of one workload would keep all others
        waiting for ever.

        Args:
            node: where it is to go.
            uid: of the pod.
            ticket: of the pod.
            deadline: by the clock of the event loop.

        Raises:
            TimeoutError: others were on their way until the deadline.
        """
        flight = self._flights[node]
        if uid in flight.aboard or (not flight.queue and flight.takes(ticket)):
            flight.aboard[uid] = ticket
            return
        waiting = _Waiting(uid, ticket, asyncio.get_running_loop().create_future())
        flight.queue.append(waiting)
        try:
            async with asyncio.timeout_at(deadline):
                await waiting.boarded
        except BaseException:
            if waiting in flight.queue:
                flight.queue.remove(waiting)
                self._go_on(node)
            else:
                # Let aboard in the same moment; those behind it must not wait for it.
                self.leave(node, uid)
            raise
