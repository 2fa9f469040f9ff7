"""Columns as values, and the cells that many kinds have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeAlias

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.objects import jsonpaths, selectors, times

Cell: TypeAlias = Callable[[Manifest, datetime], Any]
"""What a column shows of an object at a moment."""
NONE: Final = "<none>"


@dataclass(frozen=True, slots=True)
class Column:
    """One column. Those with a priority over 0 are shown by `-o wide` only."""

    name: str
    cell: Cell
    type: str = "string"
    priority: int = 0
    format: str = ""
    description: str = ""

    def definition(self) -> Manifest:
        """As the Table says it."""
        return {
            "name": self.name, "type": self.type, "format": self.format, "description": self.description,
            "priority": self.priority,
        }  # fmt: skip


def text(name: str, path: str, default: Any = "", *, priority: int = 0) -> Column:
    """A column with what stands at a JSON path, or else `default`."""
    return Column(name, at(path, default), priority=priority)


def number(name: str, path: str) -> Column:
    """A column with the number at a JSON path, or 0."""
    return Column(name, at(path, 0), "integer")


def count(name: str, *paths: str) -> Column:
    """A column with the number of entries in lists or maps."""
    return Column(
        name, lambda obj, _: sum(len(found) for path in paths for found in jsonpaths.find(obj, path)), "integer"
    )


def wide(name: str, cell: Cell) -> Column:
    """A column for `-o wide`."""
    return Column(name, cell, priority=1)


def at(path: str, default: Any = "") -> Cell:
    """The cell with what stands at a JSON path, or else `default`."""
    return lambda obj, _: value_at(obj, path, default)


def value_at(obj: Manifest, path: str, default: Any = "") -> Any:
    """What stands at a JSON path; where that is nothing, null or an empty text, `default`."""
    found = jsonpaths.find(obj, path)
    return default if not found or found[0] in (None, "") else found[0]


def age(obj: Manifest, now: datetime) -> str:
    """How old the object is."""
    return times.age(value_at(obj, ".metadata.creationTimestamp"), now)


def true_conditions(obj: Manifest) -> set[str]:
    """The types of the conditions that are True."""
    return {each["type"] for each in value_at(obj, ".status.conditions", ()) if each["status"] == "True"}


def joined(values: Iterable[Any]) -> str:
    """Values with commas, `<none>` where there are none."""
    return ",".join(map(str, values)) or NONE


def selector(path: str) -> Cell:
    """The cell with the label selector at a JSON path, in the words of `-l`."""
    return lambda obj, _: selectors.text(value_at(obj, path, {})) or NONE


NAME: Final = Column("Name", at(".metadata.name"), format="name")
AGE: Final = Column("Age", age)
