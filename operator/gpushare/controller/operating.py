"""Running kopf beside everything else: in a thread and an event loop of its own, and again when it ends. Run by `running`.

Apart, because kopf takes the loop that it runs in for its own: when it ends it cancels every task that was started after
it, and it sets the process's signal handlers. In the sandbox, that would be everybody's tasks and the terminal's Ctrl-C.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
import weakref
from collections.abc import Callable, Collection, Coroutine, Iterator
from http import HTTPStatus
from typing import Any, cast

import kopf

from gpushare import names
from gpushare.controller import handlers
from gpushare.controller.kopf_settings import Connection, build_settings
from gpushare.controller.snapshotting import Sighting
from gpushare.kube.backoff import Backoff
from gpushare.kube.complaints import Complaints
from gpushare.kube.credentials import Credentials, TokenReader, tls_context
from gpushare.plan.snapshot import Settings
from gpushare.serving import closing

_STARTED_SECONDS = 60.0
"""Whoever ran for that long had started well; the next pause is short again."""
_TURN_SECONDS = 5.0
_PATIENCE_SECONDS = 3.0
"""How long a task of kopf that was cancelled may take to end; longer than kopf lets its workers finish."""


class Operating:
    """The watches. What they tell arrives in the loop that `run` is called in."""

    def __init__(
        self,
        credentials: Credentials,
        settings: Settings,
        *,
        see: Callable[[Sighting, bool], None],
        log: logging.Logger,
    ) -> None:
        """`see` takes what was seen, and whether it is gone."""
        self._server = credentials.server
        self._tokens = TokenReader(credentials)
        self._tls = tls_context(credentials)
        self._settings = settings
        self._see = see
        self._log = log
        self._turned = time.monotonic()

    @property
    def standing_seconds(self) -> float:
        """For how long the loop of the watches has not turned; a few seconds are nothing."""
        return time.monotonic() - self._turned

    async def run(self) -> None:
        """Watches until cancelled. Whatever ends kopf (a watch that is refused for good) is logged; then it starts again."""
        backoff = Backoff(first=0.2, most=30.0)
        clock = asyncio.get_running_loop().time
        streaming = True
        with _logged_to(self._log) as forward:
            while True:
                started = clock()
                self._turned = time.monotonic()
                reason = await self._run_once(streaming=streaming)
                if forward.take_refusal() and streaming:
                    self._log.info("the API server streams no lists, reading them in pages")
                else:
                    self._log.warning("watches ended, starting again", extra={"reason": reason})
                # Streamed lists are not in every version that we serve; who refuses them gets plain ones.
                streaming = False
                if clock() - started > _STARTED_SECONDS:
                    backoff.reset()
                await asyncio.sleep(backoff.next())

    async def _run_once(self, *, streaming: bool) -> str:
        """One life of kopf. Returns why it ended; when cancelled, stops kopf and waits for that."""
        home = asyncio.get_running_loop()

        def see(sighting: Sighting, gone: bool) -> None:  # noqa: FBT001 - the shape of `handlers.See`
            home.call_soon_threadsafe(self._see, sighting, gone)

        life = _Life(lambda stop: self._operate(see, stop, streaming=streaming))
        life.start()
        try:
            return await asyncio.shield(life.ended)
        except asyncio.CancelledError:
            life.stop()
            await closing.finish(asyncio.wait({life.ended}))
            raise

    async def _operate(self, see: handlers.See, stop: asyncio.Event, *, streaming: bool) -> None:
        registry = kopf.OperatorRegistry()
        handlers.register(registry, self._settings, see)

        @kopf.on.login(registry=registry)
        async def login(**_: Any) -> kopf.ConnectionInfo:
            token = self._tokens.read(anew=True)
            return Connection(server=self._server, scheme="Bearer" if token else None, token=token, tls=self._tls)

        asyncio.get_running_loop().set_exception_handler(self._see_leftover)
        turning = asyncio.create_task(self._turn())
        try:
            before = asyncio.all_tasks()
            tasks = await kopf.spawn_tasks(
                registry=registry,
                settings=build_settings(streaming=streaming),
                standalone=True,
                # Kopf would look up the user's name, and the one that a container runs as has none.
                identity=cast("Any", names.CONTROLLER),
                namespaces=[self._settings.namespace],
                stop_flag=stop,
            )
            await run_to_the_end(tasks, ignored=before)
        finally:
            turning.cancel()
            # kopf does not wait until those of its watches are closed.
            await cast("_Loop", asyncio.get_running_loop()).hang_up()

    def _see_leftover(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        # Of tasks that kopf leaves behind when it ends; what failed it has told already.
        self._log.debug("left behind by kopf", extra={"reason": repr(context.get("exception", context["message"]))})

    async def _turn(self) -> None:
        while True:
            self._turned = time.monotonic()
            await asyncio.sleep(_TURN_SECONDS)


async def run_to_the_end(tasks: Collection[asyncio.Task[None]], *, ignored: Collection[asyncio.Task[Any]]) -> None:
    """Runs kopf's tasks until one of them ends, then until all have ended: kopf itself would wait for some for ever.

    It cancels a watch and what would pause that watch at once; in the middle of a request, the watch then takes its own
    cancellation for a pause, and goes on (kopf 1.45).
    """
    running = asyncio.create_task(kopf.run_tasks(tasks, ignored=ignored))
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    while not running.done():
        await asyncio.wait({running}, timeout=_PATIENCE_SECONDS)
        for task in asyncio.all_tasks():
            if task.cancelling():
                task.cancel()
    await running


class _Loop(asyncio.SelectorEventLoop):
    """Knows its connections, to end them."""

    def __init__(self) -> None:
        super().__init__()
        self._connections: weakref.WeakSet[asyncio.Transport] = weakref.WeakSet()

    async def create_connection(self, *args: Any, **named: Any) -> Any:
        """As ever."""
        transport, protocol = await super().create_connection(*args, **named)
        self._connections.add(transport)
        return transport, protocol

    async def hang_up(self) -> None:
        """Ends all connections without a goodbye, which over TLS would wait for that of the server."""
        for transport in self._connections:
            transport.abort()
        await asyncio.sleep(0)  # in which their sockets are closed


class _Life(threading.Thread):
    """A thread that runs one coroutine in a loop of its own, to be started and awaited from another loop."""

    def __init__(self, main: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
        super().__init__(name="kopf", daemon=True)
        self._main = main
        self._home = asyncio.get_running_loop()
        self._loop = _Loop()
        self._asked = asyncio.Event()
        self.ended: asyncio.Future[str] = self._home.create_future()
        """Why it ended."""

    def run(self) -> None:
        reason = "asked to"
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._main(self._asked))
        except Exception as error:  # noqa: BLE001 - kopf ends with whatever its tasks raised; the caller starts it again
            reason = repr(error)
        # Whoever was told to stop in the middle of waiting for this may be gone.
        with contextlib.suppress(RuntimeError):
            self._home.call_soon_threadsafe(self.ended.set_result, reason)

    def stop(self) -> None:
        # It may just have ended by itself, and closed its loop.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._asked.set)


@contextlib.contextmanager
def _logged_to(log: logging.Logger) -> Iterator[_Forward]:
    """Leads the warnings of kopf, which has one tree of loggers a process, into the controller's log."""
    logger = logging.getLogger("kopf")
    forward = _Forward(log)
    logger.addHandler(forward)
    logger.setLevel(logging.WARNING)
    logger.propagate = False
    try:
        yield forward
    finally:
        logger.removeHandler(forward)
        # Replicas in one process end in any order.
        if not any(isinstance(each, _Forward) for each in logger.handlers):
            logger.setLevel(logging.NOTSET)
            logger.propagate = True


class _Forward(logging.Handler):
    def __init__(self, log: logging.Logger) -> None:
        super().__init__()
        self._log = log
        self._complaints = Complaints(time.monotonic)
        self._is_refused = False

    def take_refusal(self) -> bool:
        """Whether the API server has refused a watch as one that it does not know, since this was asked last."""
        is_refused, self._is_refused = self._is_refused, False
        return is_refused

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if getattr(error, "status", None) == HTTPStatus.UNPROCESSABLE_ENTITY:
            self._is_refused = True
        # Each watch is refused then, or loses its connection as kopf ends: no news until it starts again.
        # And it runs in a thread on purpose; every start would warn that it does not see the signals.
        message = record.getMessage()
        if self._is_refused or message.startswith("OS signals are ignored"):
            return
        # A server that is away fails a dozen watches every few seconds; what they have in common stands behind the arrow.
        if self._complaints.is_news(message.rpartition(" -> ")[2]):
            self._log.log(record.levelno, "kopf", extra={"reason": message}, exc_info=record.exc_info)
