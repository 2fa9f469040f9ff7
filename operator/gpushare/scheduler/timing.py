"""How long answers take, for metrics: counted in classes, as histograms are. Used by `extender`."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0)
"""Seconds."""


@dataclass(slots=True)
class Spread:
    """The durations of one kind of answer."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    """One more than there are bounds."""
    sum: float = 0.0

    def add(self, seconds: float) -> None:
        """One answer more."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.sum += seconds


class Timings:
    """Durations by kind."""

    def __init__(self, kinds: Sequence[str]) -> None:
        self.spreads = {kind: Spread() for kind in kinds}

    @contextmanager
    def measure(self, kind: str) -> Iterator[None]:
        """Counts how long what is done inside takes, however it ends."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.spreads[kind].add(time.perf_counter() - begin)
