"""What every process of ours does around its work: help, wrong usage, the log, signals, the exit code.

Called by the `main` of each; the work itself knows nothing of it, so that the sandbox and tests run it among others.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from gpushare.errors import UsageError
from gpushare.serving import closing
from gpushare.serving.logs import log_as_json

WRONG_USAGE = 2
"""Exit code for a command line or an environment that cannot be used."""
STARTED_SECONDS = 5.0
_HELP = frozenset({"-h", "--help", "-help"})
_Options = TypeVar("_Options")


@dataclass(frozen=True, slots=True)
class Signals:
    """What the outside world asks of a process."""

    stop: asyncio.Event = field(default_factory=asyncio.Event)
    """SIGTERM, SIGINT or SIGQUIT came."""
    again: asyncio.Event = field(default_factory=asyncio.Event)
    """SIGHUP came, by which NVIDIA's programs read everything again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """How one process is called."""

    name: str
    usage: Callable[[], str]
    """What `--help` prints."""

    def run(
        self,
        argv: Sequence[str],
        parse: Callable[[], _Options],
        work: Callable[[_Options, Signals], Awaitable[int]],
        *,
        level: Callable[[_Options], str] = lambda _: "info",
    ) -> int:
        """Runs `work` until it returns an exit code. Returns that; 0 after help; 2 where `parse` raises `UsageError`."""
        if _HELP & set(argv):
            print(self.usage(), end="")  # noqa: T201 - asked for on a terminal
            return 0
        try:
            options = parse()
        except UsageError as error:
            print(f"gpushare {self.name}: {error}", file=sys.stderr)  # noqa: T201 - before there is a log
            return WRONG_USAGE
        log_as_json(level(options))
        # Pydantic searches every installed package for plugins at its first model, which takes 30 ms of an agent's start.
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
        return asyncio.run(_with_signals(lambda signals: work(options, signals)))


async def run_until(work: Coroutine[Any, Any, None], stop: asyncio.Event, *, seconds: float | None = None) -> bool:
    """Runs `work` until it is done, `stop` is set or the time is over, and lets it see to its end.

    Returns whether it is done. Raises what it raised.
    """
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({working, stopping}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (working, stopping):
            task.cancel()
        await closing.finish(asyncio.wait({working, stopping}))
    if working.cancelled():
        return False
    working.result()
    return True


def collect_later(loop: asyncio.AbstractEventLoop) -> None:
    """Looks for no garbage while a process starts: there is none yet, and looking takes a tenth of an agent's start."""

    def collect() -> None:
        gc.enable()
        gc.collect()
        # What is there by now stays: nobody has to look at it again.
        gc.freeze()

    gc.disable()
    loop.call_later(STARTED_SECONDS, collect)


async def _with_signals(work: Callable[[Signals], Awaitable[int]]) -> int:
    signals, loop = Signals(), asyncio.get_running_loop()
    collect_later(loop)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        loop.add_signal_handler(number, signals.stop.set)
    # Handled by all, since unhandled it would end the process, and side-cars of NVIDIA's operator send it.
    loop.add_signal_handler(signal.SIGHUP, signals.again.set)
    return await work(signals)
