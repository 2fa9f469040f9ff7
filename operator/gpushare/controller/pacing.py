"""How often something may be written: at a steady rate in the long run, a few times in a row when something happens."""

from __future__ import annotations

from collections.abc import Callable


class Pace:
    """An allowance for each key, which grows with time up to a bound."""

    def __init__(self, clock: Callable[[], float], *, seconds: float, burst: int) -> None:
        """One write in `seconds`, and up to `burst` at once after a quiet time."""
        self._clock = clock
        self._seconds = seconds
        self._burst = burst
        self._full_at: dict[str, float] = {}
        """When a key's allowance is whole again."""

    def wait(self, key: str) -> float:
        """Seconds until the next write is allowed; 0: now."""
        missing = max(0.0, self._full_at.get(key, 0.0) - self._clock())
        return max(0.0, missing - (self._burst - 1) * self._seconds)

    def count(self, key: str) -> None:
        """One write was done."""
        self._full_at[key] = max(self._clock(), self._full_at.get(key, 0.0)) + self._seconds
