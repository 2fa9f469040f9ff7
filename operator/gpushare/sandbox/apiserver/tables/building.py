"""Column definitions and rows of a Table, for built-in and for custom kinds."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.objects import jsonpaths, times
from gpushare.sandbox.apiserver.objects.jsonvalues import compact
from gpushare.sandbox.apiserver.resources import Resource
from gpushare.sandbox.apiserver.tables import kinds
from gpushare.sandbox.apiserver.tables.columns import AGE, NAME, Cell, Column

_TYPES: Final[dict[str, Any]] = {"integer": int, "number": int | float, "boolean": bool}


def build(resource: Resource, objects: Iterable[Manifest], now: datetime | None = None) -> Manifest:
    """Column definitions and rows of a Table, one row an object, without the objects themselves.

    Args:
        resource: the kind, which decides on the columns.
        objects: in the form in which this kind shows them.
        now: against which ages are counted; the present when not given.
    """
    columns = columns_of(resource)
    now = now or datetime.now(UTC)
    return {
        "columnDefinitions": [column.definition() for column in columns],
        "rows": [{"cells": [column.cell(obj, now) for column in columns]} for obj in objects],
    }


def columns_of(resource: Resource) -> tuple[Column, ...]:
    """The columns of a kind: for custom ones those that their definition names, else name and age."""
    if not resource.custom:
        return kinds.COLUMNS.get((resource.group, resource.plural), (NAME, AGE))
    declared = resource.crd_version.get("additionalPrinterColumns")
    if declared is None:
        return NAME, Column("Age", AGE.cell, "date")
    return _declared(compact(declared))


@lru_cache(maxsize=256)
def _declared(text: str) -> tuple[Column, ...]:
    """The columns that a definition declares, by their JSON, so that they are built once as long as they stay the same."""
    columns = (
        Column(
            each["name"], _cell(each["jsonPath"], each["type"]), each["type"], each.get("priority", 0),
            each.get("format", ""), each.get("description", ""),
        )
        for each in json.loads(text)
    )  # fmt: skip
    return NAME, *columns


def _cell(path: str, kind: str) -> Cell:
    """A cell of a declared column; None, which kubectl shows as nothing, where the path leads nowhere or the type is wrong."""

    def cell(obj: Manifest, now: datetime) -> Any:
        found = jsonpaths.find(obj, path)
        if not found:
            return None
        value = found[0]
        if kind == "date":
            return times.age(value, now) if isinstance(value, str) else "<invalid>"
        if kind == "string":
            return value if isinstance(value, str) else compact(value)
        return value if isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool)) else None

    return cell
