"""Notices when somebody else undoes what we write, again and again, so that nobody fights over it. Used by `effects`.

Whoever takes a label or an object from us once may be a person, or an operator at its end, and it is put right. Who does so
every time is a program with another opinion; then the label or object is left to it, and the policy says so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

TIMES: Final = 3
"""So often something is claimed before it is left to the other."""
WINDOW_SECONDS: Final = 600.0
"""Within so many seconds."""
LEFT_SECONDS: Final = 3600.0
"""Afterwards it is tried again: the other may be gone."""

_Key = TypeVar("_Key", bound=Hashable)


class Contention(Generic[_Key]):
    """What was claimed how often. Remembers for ten minutes what was claimed once, and for an hour what is left."""

    def __init__(self, clock: Callable[[], float], times: int = TIMES) -> None:
        """`clock` gives seconds that never jump; `times`: how often something is claimed before it is left."""
        self._clock = clock
        self._times = times
        self._claims: dict[_Key, deque[float]] = {}
        self._left: dict[_Key, float] = {}

    def claim(self, key: _Key) -> None:
        """It has to be written: it is there no longer as we wrote it, or has never been written."""
        now = self._clock()
        claims = self._claims.setdefault(key, deque(maxlen=self._times))
        claims.append(now)
        if len(claims) == self._times and now - claims[0] < WINDOW_SECONDS:
            self._left[key] = now
            del self._claims[key]

    def forget(self, key: _Key) -> None:
        """It is not wanted any more. Writing it again, once it is wanted again, then counts against nobody."""
        self._claims.pop(key, None)

    def left(self) -> frozenset[_Key]:
        """What is left to others now. Forgets what is long ago."""
        now = self._clock()
        self._claims = {key: claims for key, claims in self._claims.items() if now - claims[-1] < WINDOW_SECONDS}
        self._left = {key: since for key, since in self._left.items() if now - since < LEFT_SECONDS}
        return frozenset(self._left)
