"""Telling a trouble that lasts once in a while, however often it is met. Used by what tries again for as long as it takes."""

from __future__ import annotations

from collections.abc import Callable

AGAIN_SECONDS = 300.0
"""How long nobody has to read the same: an API server may be away for a night."""


class Complaints:
    """What was told within the last minutes."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` gives seconds that never jump."""
        self._clock = clock
        self._told: dict[str, float] = {}

    def is_news(self, trouble: str) -> bool:
        """Whether it is to be told now, and counts as told from then on."""
        now = self._clock()
        self._told = {text: at for text, at in self._told.items() if now - at < AGAIN_SECONDS}
        is_news = trouble not in self._told
        self._told.setdefault(trouble, now)
        return is_news

    def end(self) -> None:
        """All is well: what comes next is news."""
        self._told.clear()
