"""Waits that grow each time something fails. Used by whoever tries again what a server or a program has refused."""

from __future__ import annotations

import random


class Backoff:
    """Delays that double up to a cap, each drawn from the upper half, so that many waiters spread out."""

    def __init__(self, *, first: float = 0.1, most: float = 10.0) -> None:
        """Delays in seconds: the shortest and the longest."""
        self._first = first
        self._most = most
        self._next = first

    def next(self) -> float:
        """Seconds to wait now; the next wait will be longer."""
        delay = self._next
        self._next = min(delay * 2, self._most)
        return delay * random.uniform(0.5, 1)  # noqa: S311 - spreads load, hides nothing

    def reset(self) -> None:
        """It worked: start again from the shortest."""
        self._next = self._first
