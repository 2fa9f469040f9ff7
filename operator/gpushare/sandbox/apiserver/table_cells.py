"""Columns as values, and the cells that many kinds have in common. Called by the `table_*` modules and `tables`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final, TypeAlias

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import times

Cells: TypeAlias = Callable[[Manifest, datetime], list[Any]]
NONE: Final = "<none>"


@dataclass(frozen=True, slots=True)
class Column:
    """One column. Those with a priority over 0 are shown by `-o wide` only."""

    name: str
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


@dataclass(frozen=True)
class Columns:
    """The columns of a kind, and how an object becomes its cells."""

    columns: tuple[Column, ...]
    cells: Cells

    @cached_property
    def definitions(self) -> list[Manifest]:
        """All columns as the Table says them."""
        return [column.definition() for column in self.columns]


NAME: Final = Column("Name", format="name")
AGE: Final = Column("Age")


def integer(name: str, priority: int = 0) -> Column:
    """A column of numbers."""
    return Column(name, "integer", priority)


def wide(name: str) -> Column:
    """A column for `-o wide`."""
    return Column(name, priority=1)


def name_of(obj: Manifest) -> str:
    """The object's name."""
    return str(obj["metadata"].get("name", ""))


def age_of(obj: Manifest, now: datetime) -> str:
    """How old the object is."""
    return times.age(obj["metadata"].get("creationTimestamp"), now)


def spec_of(obj: Manifest) -> Mapping[str, Any]:
    """`spec`, empty where there is none."""
    return obj.get("spec") or {}


def status_of(obj: Manifest) -> Mapping[str, Any]:
    """`status`, empty where there is none."""
    return obj.get("status") or {}


def joined(values: Iterable[Any]) -> str:
    """Values with commas, `<none>` where there are none."""
    return ",".join(map(str, values)) or NONE


def selector_text(selector: Mapping[str, Any] | None) -> str:
    """A label selector in the words of `-l`."""
    if not selector:
        return NONE
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    return ",".join(parts + [_expression(each) for each in selector.get("matchExpressions") or ()]) or NONE


def labels_text(labels: Mapping[str, str] | None) -> str:
    """A plain selector: labels that must be equal."""
    return joined(f"{key}={value}" for key, value in sorted((labels or {}).items()))


def containers_text(template: Mapping[str, Any]) -> tuple[str, str]:
    """Names and images of a template's containers."""
    containers = ((template.get("spec") or {}).get("containers")) or ()
    return ",".join(each["name"] for each in containers), ",".join(each.get("image", "") for each in containers)


def _expression(expression: Mapping[str, Any]) -> str:
    key, values = expression["key"], ",".join(sorted(expression.get("values") or ()))
    words = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "DoesNotExist": f"!{key}"}
    return str(words.get(expression["operator"], key))
