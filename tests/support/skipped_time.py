"""Time that passes as soon as nobody has anything to do: for tests of what waits. Used through the fixture `skipped_time`.

Only where nothing but the loop takes part: the time of threads, sockets and processes is not the loop's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def skipped(loop: Any) -> Iterator[None]:
    """The loop's clock stands still while anybody works, and then jumps to what comes next, however slow the machine is."""
    now, select = loop.time(), loop._selector.select

    def skip(seconds: float | None) -> Any:
        nonlocal now
        found = select(seconds and 0)
        if seconds and not found:
            now += seconds
        return found

    loop.time, loop._selector.select = lambda: now, skip
    try:
        yield
    finally:
        del loop.time
        loop._selector.select = select
