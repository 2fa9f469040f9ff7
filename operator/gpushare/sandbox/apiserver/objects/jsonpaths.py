"""The JSON paths of CustomResourceDefinitions: printer columns and selectable fields.

Only what they contain in practice: fields, quoted fields, list positions, `*` and filters by text. Called by `tables` too, for
the columns of built-in kinds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, TypeAlias

_Step: TypeAlias = Callable[[Any], Iterator[Any]]

_TOKEN = re.compile(
    r"""\.?(?P<field>(?:[^.\[\]\\'"]|\\.)+)
      | \[['"](?P<quoted>[^'"]+)['"]\]
      | \[(?P<position>-?\d+)\]
      | (?P<every>\.?\[?\*\]?)
      | \[\?\(\s*@\.(?P<key>[^=!<>\s]+)\s*(?P<operator>==|!=)\s*['"](?P<value>[^'"]*)['"]\s*\)\]""",
    re.VERBOSE,
)


def find(obj: Any, path: str) -> list[Any]:
    """All values that a path leads to, in order; empty when it leads nowhere or is no path."""
    values: Iterable[Any] = (obj,)
    for step in _steps(path):
        values = [found for value in values for found in step(value)]
    return list(values)


@lru_cache(maxsize=1024)
def _steps(path: str) -> tuple[_Step, ...]:
    rest = path.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    steps = []
    while rest and rest != ".":
        match = _TOKEN.match(rest)
        if match is None:
            return (lambda _: iter(()),)
        steps.append(_step(match))
        rest = rest[match.end() :]
    return tuple(steps)


def _step(match: re.Match[str]) -> _Step:
    parts = match.groupdict()
    if (name := parts["quoted"] or parts["field"]) is not None:
        return _field(re.sub(r"\\(.)", r"\1", name))
    if parts["position"] is not None:
        at = int(parts["position"])
        return lambda value: iter(value[at : at + 1 or None] if isinstance(value, list) else ())
    if parts["every"] is not None:
        return _every
    return _filter(parts["key"], parts["value"], wanted=parts["operator"] == "==")


def _field(name: str) -> _Step:
    return lambda value: iter((value[name],) if isinstance(value, dict) and name in value else ())


def _every(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        return iter(value.values())
    return iter(value if isinstance(value, list) else ())


def _filter(path: str, text: str, *, wanted: bool) -> _Step:
    def matches(item: Any) -> bool:
        return any(found == text for found in find(item, f".{path}")) is wanted

    return lambda value: (item for item in value if matches(item)) if isinstance(value, list) else iter(())
