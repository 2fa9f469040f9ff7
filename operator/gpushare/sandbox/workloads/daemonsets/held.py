"""Nodes on which the pod of a DaemonSet keeps ending: the next attempt waits, longer each time. Used by the controller."""

from __future__ import annotations

from dataclasses import dataclass

_FIRST_SECONDS = 1.0
_LAST_SECONDS = 900.0
"""Also the time after which a node starts afresh. Both as in the real controller."""


@dataclass(slots=True)
class _Held:
    until: float
    pause: float


class HeldNodes:
    """Of one DaemonSet. Times are seconds of any clock that never goes back."""

    def __init__(self) -> None:
        self._held: dict[str, _Held] = {}

    def names(self, now: float) -> frozenset[str]:
        """The nodes that have to wait."""
        return frozenset(name for name, held in self._held.items() if held.until > now)

    def seconds_until_free(self, now: float) -> float | None:
        """When the first of them may try again; None when none waits."""
        return min((held.until - now for held in self._held.values() if held.until > now), default=None)

    def hold(self, name: str, now: float) -> None:
        """A pod has ended on this node and is replaced at once; the next one that ends will have to wait."""
        known = self._held.get(name)
        pause = _FIRST_SECONDS
        if known is not None and now - known.until <= _LAST_SECONDS:
            pause = min(known.pause * 2, _LAST_SECONDS)
        self._held[name] = _Held(now + pause, pause)
