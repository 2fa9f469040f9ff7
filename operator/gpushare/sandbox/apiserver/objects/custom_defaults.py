"""Defaults of custom resources, as the schema of their definition has them. Called by the write path, before validation."""

from __future__ import annotations

from typing import Any, Final

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.objects.jsonvalues import copied
from gpushare.sandbox.apiserver.objects.schemas import Schema

_SERVER_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})


def apply(obj: Manifest, schema: Schema) -> None:
    """Fills in the schema's defaults, in place, wherever the parent is there; nulls that may not be there go."""
    _fill(obj, schema, kept=_SERVER_FIELDS)


def _fill(value: Any, schema: Schema, *, kept: frozenset[str] = frozenset()) -> None:
    if isinstance(value, list):
        for item in value:
            _fill(item, schema.items)
    elif isinstance(value, dict):
        for name, raw in schema.properties.items():
            if "default" in raw and name not in kept:
                value.setdefault(name, copied(raw["default"]))
        for name, item in list(value.items()):
            if (item is None or isinstance(item, dict | list)) and name not in kept:
                _fill_field(value, name, schema.child(name))


def _fill_field(parent: dict[str, Any], name: str, schema: Schema) -> None:
    if _is_wrong_null(parent[name], schema):
        if "default" not in schema.raw:
            del parent[name]
            return
        parent[name] = copied(schema.raw["default"])
    _fill(parent[name], schema)


def _is_wrong_null(value: Any, schema: Schema) -> bool:
    return value is None and not schema.preserves and not schema.raw.get("nullable")
