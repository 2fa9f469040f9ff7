"""Custom resources: their defaults, and their validation against the structural schema, in a real server's words.

Called by the write path with objects that `decoding` has pruned. CEL rules (`x-kubernetes-validations`) are not
evaluated; `has_rules` tells of them, so that the server can say so.
"""

from __future__ import annotations

from typing import Any, Final

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import structural
from gpushare.sandbox.apiserver.jsonvalues import copied
from gpushare.sandbox.apiserver.schemas import Schema
from gpushare.sandbox.apiserver.statuses import Cause

_NOT_CHECKED: Final = Cause(
    "FieldValueInvalid",
    "<nil>",
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation",
)
_BLOCKING: Final = frozenset(
    {
        "FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid",
    }
)  # fmt: skip
"""With these a real server does not go on to CEL rules, and says so."""
_SERVER_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})
_STATUS: Final = "status"


def apply_defaults(obj: Manifest, schema: Schema) -> None:
    """Fills in the schema's defaults, in place, wherever the parent is there; nulls that may not be there go."""
    _fill(obj, schema, kept=_SERVER_FIELDS)


def validate(obj: Manifest, schema: Schema, subresource: str = "") -> list[Cause]:
    """What the schema has against an object; metadata is left to `validation`.

    Through the status subresource only status is looked at, and texts name its fields from there.
    """
    if subresource == _STATUS:
        root, checked, value = structural.Place((_STATUS,), below=1), schema.child(_STATUS), obj.get(_STATUS, {})
    else:
        root, checked = structural.Place((), below=0), schema
        value = {name: item for name, item in obj.items() if name not in _SERVER_FIELDS}
    causes = [*structural.check(value, checked, root), *structural.check_lists(value, checked, root)]
    if has_rules(schema) and any(cause.reason in _BLOCKING for cause in causes):
        causes.append(_NOT_CHECKED)
    return causes


def has_rules(schema: Schema) -> bool:
    """Whether CEL rules stand anywhere in the schema."""
    return _has_rules(schema.raw)


def _has_rules(node: Any) -> bool:
    if isinstance(node, list):
        return any(map(_has_rules, node))
    return isinstance(node, dict) and ("x-kubernetes-validations" in node or any(map(_has_rules, node.values())))


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
