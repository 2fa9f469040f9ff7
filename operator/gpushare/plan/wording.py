"""Texts for people that stay short whatever the size of the cluster. Used by every module here that writes a message."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

NAMES: Final = 3
"""How many names of nodes a message spells out."""
PODS: Final = 5
"""How many pods."""
KEYS: Final = 12
"""How many keys of a ConfigMap a message offers to choose from."""
MESSAGE: Final = 1024
"""Most characters of one message; an Event takes no more."""


def counted(number: int, noun: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(items: Collection[str], limit: int = NAMES) -> str:
    """Items in order, the first few by name: `a, b, c and 47 more`."""
    ordered = sorted(items)
    if len(ordered) <= limit:
        return ", ".join(ordered)
    return f"{', '.join(ordered[:limit])} and {len(ordered) - limit} more"


def joined(sentences: Iterable[str], limit: int = MESSAGE) -> str:
    """Sentences as one text of bounded length; what does not fit is counted."""
    shown: list[str] = []
    rest = list(dict.fromkeys(sentences))
    room = limit - len("; and 9999 more")
    while rest and sum(len(text) + 2 for text in shown) + len(rest[0]) <= room:
        shown.append(rest.pop(0))
    if rest and not shown:
        shown.append(f"{rest.pop(0)[: room - 3]}...")
    return "; ".join([*shown, f"and {len(rest)} more"] if rest else shown)
