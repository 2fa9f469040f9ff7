"""Tables as `kubectl get` shows them. The server says columns and cells; kubectl drops the wide ones and lays them out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import jsonpaths, table_kinds, times
from gpushare.sandbox.apiserver.jsonvalues import compact
from gpushare.sandbox.apiserver.resources import Resource
from gpushare.sandbox.apiserver.table_cells import AGE, NAME, Column, Columns, age_of, name_of

_PLAIN: Final = Columns((NAME, AGE), lambda obj, now: [name_of(obj), age_of(obj, now)])
_AGE_OF_CUSTOM: Final = ({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},)


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
        "columnDefinitions": columns.definitions,
        "rows": [{"cells": columns.cells(obj, now)} for obj in objects],
    }


def columns_of(resource: Resource) -> Columns:
    """The columns of a kind: for custom ones those that their definition names, else name and age."""
    if not resource.custom:
        return table_kinds.COLUMNS.get((resource.group, resource.plural), _PLAIN)
    return _custom(resource.crd_version)


def _custom(version: Mapping[str, Any]) -> Columns:
    declared = version.get("additionalPrinterColumns")
    return _declared(compact(declared if declared is not None else list(_AGE_OF_CUSTOM)))


@lru_cache(maxsize=256)
def _declared(text: str) -> Columns:
    """The columns that a definition declares, by their JSON, so that they are built once as long as they stay the same."""
    declared: list[dict[str, Any]] = json.loads(text)
    columns = [
        Column(each["name"], each["type"], each.get("priority", 0), each.get("format", ""), each.get("description", ""))
        for each in declared
    ]

    def cells(obj: Manifest, now: datetime) -> list[Any]:
        return [name_of(obj), *(_cell(jsonpaths.find(obj, each["jsonPath"]), each["type"], now) for each in declared)]

    return Columns((NAME, *columns), cells)


def _cell(found: Sequence[Any], kind: str, now: datetime) -> Any:
    """One cell of a declared column; None, which kubectl shows as nothing, where the path leads nowhere or the type is wrong."""
    if not found:
        return None
    value = found[0]
    if kind == "date":
        return times.age(value, now) if isinstance(value, str) else "<invalid>"
    if kind == "string":
        return value if isinstance(value, str) else compact(value)
    fits = {"integer": int, "number": int | float, "boolean": bool}[kind]
    return value if isinstance(value, fits) and (kind == "boolean" or not isinstance(value, bool)) else None
