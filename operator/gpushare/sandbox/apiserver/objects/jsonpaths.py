"""The JSON paths of CustomResourceDefinitions: printer columns and selectable fields.

Only what they contain in practice: fields, quoted fields, list positions, `*` and filters by text. Called by `tables` too, for
the columns of built-in kinds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
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
    names, steps = _read(path)
    for name in names:
        if not isinstance(obj, dict) or name not in obj:
            return []
        obj = obj[name]
    values = [obj]
    for step in steps:
        values = [found for value in values for found in step(value)]
    return values


@lru_cache(maxsize=1024)
def _read(path: str) -> tuple[tuple[str, ...], tuple[_Step, ...]]:
    """The fields with which a path begins, which is all that most have, and the steps from there on."""
    rest = path.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    names: list[str] = []
    steps: list[_Step] = []
    while rest and rest != ".":
        match = _TOKEN.match(rest)
        if match is None:
            return (), (lambda _: iter(()),)
        name = match["quoted"] or re.sub(r"\\(.)", r"\1", match["field"] or "")
        if name and not steps:
            names.append(name)
        else:
            steps.append(_field(name) if name else _step(match))
        rest = rest[match.end() :]
    return tuple(names), tuple(steps)


def _step(match: re.Match[str]) -> _Step:
    if match["position"] is not None:
        at = int(match["position"])
        return lambda value: iter(value[at : at + 1 or None] if isinstance(value, list) else ())
    if match["every"] is not None:
        return _every
    return _filter(match["key"], match["value"], wanted=match["operator"] == "==")


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
