"""What containers print: kept in memory, a bounded number of lines, for `kubectl logs`.

Written by whatever runs in a container, read by `logserver`.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from gpushare.sandbox.apiserver.objects import times

LINES_MOST = 5000
"""Lines of one run of a container that are kept; a real kubelet keeps 10 MiB."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line and when it was printed, in seconds since 1970."""

    time: float
    text: str

    def stamped(self) -> str:
        """With its time in front, as `kubectl logs --timestamps` shows it."""
        return f"{times.micro_text(self.time)} {self.text}"


@dataclass(slots=True)
class Output:
    """The output of one run of a container. Written from any thread, read in the event loop that made it."""

    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _lines: deque[Line] = field(default_factory=lambda: deque(maxlen=LINES_MOST))
    _written: int = 0
    _ended: bool = False
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def write(self, text: str) -> None:
        """Adds what was printed, line by line."""
        now = time.time()
        with self._lock:
            for line in text.splitlines():
                self._lines.append(Line(now, line))
                self._written += 1
        self._tell()

    def end(self) -> None:
        """The run is over: nothing more will come."""
        self._ended = True
        self._tell()

    def _tell(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._changed.set)

    def lines(self, *, since: float = 0.0, tail: int | None = None) -> list[Line]:
        """What has been printed from `since` on (seconds since 1970), the last `tail` lines of it."""
        found = [line for line in tuple(self._lines) if line.time >= since]
        return found if tail is None else found[len(found) - min(tail, len(found)) :]

    async def follow(self, *, since: float = 0.0, tail: int | None = None) -> AsyncIterator[list[Line]]:
        """The same, then whatever comes, until the run is over."""
        seen = self._written
        yield self.lines(since=since, tail=tail)
        while True:
            fresh = self._written - seen
            if fresh:
                seen += fresh
                yield self.lines(tail=fresh)
            elif self._ended:
                return
            else:
                self._changed.clear()
                # Checked again after the flag is down: a line may have come just before.
                if self._written == seen and not self._ended:
                    await self._changed.wait()


class _Handler(logging.Handler):
    def __init__(self, output: Output) -> None:
        super().__init__()
        self._output = output

    def emit(self, record: logging.LogRecord) -> None:
        self._output.write(self.format(record))


class LineFormatter(logging.Formatter):
    """One line a record: level, message, then what stands in `extra`. For people; processes of a cluster log JSON."""

    _STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

    def format(self, record: logging.LogRecord) -> str:
        """A traceback stands below its line."""
        text = f"{record.levelname[0]} {super().format(record)}"
        head, newline, rest = text.partition("\n")
        extra = "".join(f" {key}={value!r}" for key, value in vars(record).items() if key not in self._STANDARD)
        return head + extra + newline + rest


def build_logger(name: str, output: Output) -> logging.Logger:
    """A logger whose records, and those of its children, become lines of `output` and nothing else.

    It is a root of its own, apart from the process's loggers: thousands of containers come and go, and none of them may
    leave a logger behind or be heard in another's output.
    """
    logger = logging.Logger(name, logging.INFO)  # noqa: LOG001 - as said: not one of the process
    handler = _Handler(output)
    handler.setFormatter(LineFormatter())
    logger.addHandler(handler)
    logger.manager = logging.Manager(logger)  # type: ignore[arg-type]  # any logger can be the root of a family
    return logger
