"""What kube-scheduler asks over HTTPS: the verbs of an extender. Used by `answering`.

Answers 200 with `Error` where something cannot be done: kube-scheduler reads no reason from any other status.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from gpushare.scheduler import wire
from gpushare.scheduler.binding import Binder, Refused
from gpushare.scheduler.deciding import Decider
from gpushare.scheduler.forwarding import FORWARDED, Forwarder, Unreachable
from gpushare.scheduler.leading import Leading
from gpushare.scheduler.timing import Timings
from gpushare.serving.http import JSON, Request, Response


class Extender:
    """The verbs of one replica."""

    def __init__(
        self,
        decider: Decider,
        binder: Binder,
        leading: Leading,
        forwarder: Forwarder,
        *,
        seconds: float,
        log: logging.Logger,
    ) -> None:
        """`seconds`: how long kube-scheduler waits for an answer."""
        self._decider = decider
        self._binder = binder
        self._leading = leading
        self._forwarder = forwarder
        self._seconds = seconds
        self._log = log
        self._verbs: Mapping[str, Callable[[bytes], Awaitable[bytes]]] = {
            "filter": self._filter,
            "prioritize": self._prioritize,
            "preempt": self._preempt,
            "bind": self._bind,
        }
        self.timings = Timings(tuple(self._verbs))
        """How long answers took, by verb."""

    def has(self, verb: str) -> bool:
        """Whether it is a verb of ours."""
        return verb in self._verbs

    async def answer(self, verb: str, request: Request) -> Response:
        """Does what is asked where this replica leads, else has the leader do it."""
        with self.timings.measure(verb):
            try:
                async with asyncio.timeout(self._seconds):
                    return await self._answer(verb, request)
            except (wire.BadCall, Refused, Unreachable) as error:
                return _failed(verb, str(error))
            except TimeoutError:
                return _failed(verb, "no replica of gpushare scheduler is ready to decide; it is tried again")
            except Exception as error:  # noqa: BLE001 - kube-scheduler would read no reason from a 500
                self._log.exception("call failed", extra={"verb": verb})
                return _failed(verb, f"gpushare scheduler has failed, see its log: {type(error).__name__}")

    async def _answer(self, verb: str, request: Request) -> Response:
        await self._leading.wait()
        if self._leading.is_leading:
            return Response(body=await self._verbs[verb](request.body), content_type=JSON)
        if FORWARDED in request.headers:
            raise Unreachable("this replica no longer leads")
        return await self._forwarder.forward(request, self._leading.leader)

    async def _filter(self, body: bytes) -> bytes:
        call = wire.read_nodes_call(body)
        return wire.write_filtered(call, self._decider.filter(call))

    async def _prioritize(self, body: bytes) -> bytes:
        return wire.write_scores(self._decider.prioritize(wire.read_nodes_call(body)).items())

    async def _preempt(self, body: bytes) -> bytes:
        return wire.write_victims(self._decider.preempt(wire.read_preempt_call(body)))

    async def _bind(self, body: bytes) -> bytes:
        call = wire.read_bind_call(body)
        await self._binder.bind(call)
        return wire.write_error("")


def _failed(verb: str, reason: str) -> Response:
    """An answer in the form of the verb. Without a reason in it: the list of priorities, and preempt's, have no place for one."""
    if verb == "prioritize":
        return Response(body=wire.write_scores(()), content_type=JSON)
    if verb == "preempt":
        return Response(body=wire.write_victims({}), content_type=JSON)
    return Response(body=wire.write_error(reason), content_type=JSON)
