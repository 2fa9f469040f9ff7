"""Custom resources against the structural schema of their definition.

CEL rules (`x-kubernetes-validations`) are not evaluated; `has_rules` tells of them, so that the server can say so.
"""

from __future__ import annotations

from typing import Any, Final

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.objects.schemas import Schema
from gpushare.sandbox.apiserver.statuses import Cause
from gpushare.sandbox.apiserver.validation import structural

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


def validate(obj: Manifest, schema: Schema, subresource: str = "") -> list[Cause]:
    """What the schema has against an object; metadata is left to `metadata`.

    Through the status subresource only status is looked at, and texts name its fields from there.
    """
    if subresource == _STATUS:
        root, checked, value = structural.Place((_STATUS,), below=1), schema.child(_STATUS), obj.get(_STATUS, {})
    else:
        root, checked = structural.Place((), below=0), schema
        value = {name: item for name, item in obj.items() if name not in _SERVER_FIELDS}
    causes = [*structural.check(value, checked, root), *structural.check_lists(value, checked, root)]
    if any(cause.reason in _BLOCKING for cause in causes) and has_rules(schema):
        causes.append(_NOT_CHECKED)
    return causes


def has_rules(schema: Schema) -> bool:
    """Whether CEL rules stand anywhere in the schema."""
    return _has_rules(schema.raw)


def _has_rules(node: Any) -> bool:
    if isinstance(node, list):
        return any(map(_has_rules, node))
    return isinstance(node, dict) and ("x-kubernetes-validations" in node or any(map(_has_rules, node.values())))
