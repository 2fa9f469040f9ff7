"""What has happened with the kubelet, in figures: calls answered and how long they took, registrations. Told by the agent."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

BOUNDS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Seconds: upper bounds of the classes into which calls are sorted; the last class has none."""
OK: Final = "OK"
REFUSED: Final = "UNKNOWN"
"""The code of gRPC that a refusal has, as in NVIDIA's device plugin."""


class Call(NamedTuple):
    """What calls have in common that are counted together. A tuple, as every call looks it up."""

    resource: str
    method: str
    code: str
    """gRPC's name of the status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """How long some calls took."""

    counts: tuple[int, ...]
    """Calls by class, one more than there are `BOUNDS`."""
    seconds: float
    """All together."""


class Counts:
    """Counts for one agent. Safe in threads, and quick: an Allocate is not to wait for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: dict[Call, tuple[list[int], list[float]]] = {}
        self._registrations: Counter[tuple[str, bool]] = Counter()

    def count_call(self, call: Call, seconds: float) -> None:
        """One call was answered."""
        with self._lock:
            known = self._calls.get(call)
            if known is None:
                known = self._calls[call] = [0] * (len(BOUNDS) + 1), [0.0]
            counts, total = known
            counts[bisect_left(BOUNDS, seconds)] += 1
            total[0] += seconds

    def count_registration(self, resource: str, *, succeeded: bool) -> None:
        """The kubelet was asked to register a resource."""
        with self._lock:
            self._registrations[resource, succeeded] += 1

    def calls(self) -> Mapping[Call, Durations]:
        """Everything so far."""
        with self._lock:
            return {
                call: Durations(counts=tuple(counts), seconds=total[0]) for call, (counts, total) in self._calls.items()
            }

    def registrations(self) -> Mapping[tuple[str, bool], int]:
        """How often, by resource and whether it succeeded."""
        with self._lock:
            return dict(self._registrations)
