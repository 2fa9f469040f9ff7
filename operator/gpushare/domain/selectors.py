"""Label selectors as people type them, as far as equality and presence go: `pool=canary`, `tier!=prod,gpu,!spot`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

_KEY: Final = r"(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?"
_VALUE: Final = r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?)?"
_TERM: Final = re.compile(
    rf"(?P<absent>!?)\s*(?P<key>{_KEY})|(?P<name>{_KEY})\s*(?P<sign>!=|==?)\s*(?P<value>{_VALUE})"
)


@dataclass(frozen=True, slots=True)
class Term:
    """One condition on one label."""

    key: str
    value: str | None
    """None: its presence is what counts."""
    negated: bool = False

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels meets it."""
        found = labels.get(self.key)
        return (found is not None if self.value is None else found == self.value) is not self.negated


@dataclass(frozen=True, slots=True)
class Selector:
    """Terms that all have to hold. Unlike those of the API server, it knows no sets."""

    text: str
    """As it was typed, for people."""
    terms: tuple[Term, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads terms that are separated by commas. Raises ValueError for anything else, and for nothing."""
        return cls(text, tuple(map(_parse_term, text.split(","))))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        return all(term.holds(labels) for term in self.terms)


def _parse_term(text: str) -> Term:
    found = _TERM.fullmatch(text.strip())
    if found is None:
        raise ValueError(
            f"{text.strip()!r}: expected labels such as pool=canary, tier!=prod, gpu or !spot, between commas"
        )
    if found["key"] is not None:
        return Term(found["key"], None, bool(found["absent"]))
    return Term(found["name"], found["value"], found["sign"] == "!=")
