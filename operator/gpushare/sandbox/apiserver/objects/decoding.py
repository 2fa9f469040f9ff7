"""From what a client sent to what the server works with: types checked, unknown fields found, values in their stored form.

Built-in kinds come out as Go would write them again: nulls and empty lists gone, quantities short, times in UTC. Custom
ones come out pruned; their types are checked later, by `validation.custom`. The result shares nothing with what came in.
"""

from __future__ import annotations

import base64
import binascii
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import statuses
from gpushare.sandbox.apiserver.objects import quantities, times
from gpushare.sandbox.apiserver.objects.jsonvalues import copied
from gpushare.sandbox.apiserver.objects.schemas import DELETE_OPTIONS, MICRO_TIME, OBJECT_META, TIME, Schema, named
from gpushare.sandbox.apiserver.resources import Resource
from gpushare.sandbox.apiserver.statuses import Cause

STRICT: Final = "Strict"
WARN: Final = "Warn"
_PLAIN_BOOLEANS: Final = frozenset(
    {
        "hostNetwork", "hostPID", "hostIPC", "readOnly", "unschedulable", "paused", "stdin", "stdinOnce", "tty",
        "publishNotReadyAddresses",
    }
)  # fmt: skip
"""Fields that Go leaves out when they are false, since they are no pointers."""
_TEXT_POINTERS: Final = frozenset({"type", "storageClassName", "volumeAttributesClassName", "holderIdentity"})
"""Optional texts that Go keeps when they are empty."""
_EMBEDDED: Final = frozenset({"apiVersion", "kind", "metadata"})
_BASE64: Final = f"{string.ascii_letters}{string.digits}+/="
_GO_TYPES: Final = {"string": "string", "boolean": "bool", "number": "float64"}


def decode(
    resource: Resource, obj: Manifest, strictness: str, warnings: list[str], *, patched: str | None = None
) -> Manifest:
    """The object in its stored form.

    Args:
        resource: the kind.
        obj: what the client sent, or what its patch made.
        strictness: what happens to unknown fields, `Strict`, `Warn` or `Ignore`.
        warnings: filled with what the client should be told.
        patched: the object that a patch made as JSON, which texts quote in full; None for a body that was sent whole.

    Raises:
        ApiError: a value has the wrong type, or an unknown field came with `Strict`: 400, or 422 for a patch.
    """
    walk = _Walk()
    try:
        decoded: Manifest = (
            walk.custom_object(obj, resource.schema) if resource.custom else walk.object(obj, resource.schema)
        )
    except _TypeError as error:
        raise _refusal(resource, patched, str(error)) from None
    if walk.unknown and strictness == STRICT:
        texts = ", ".join(f'unknown field "{path}"' for path in walk.unknown)
        raise _refusal(resource, patched, f"strict decoding error: {texts}")
    if strictness == WARN:
        warnings += [f'unknown field "{path}"' for path in walk.unknown]
    return decoded


def decode_options(options: Manifest) -> Manifest:
    """DeleteOptions, which are no kind of their own. Raises `ApiError` 400 for a value of the wrong type."""
    try:
        decoded: Manifest = _Walk().object(options, named(DELETE_OPTIONS))
    except _TypeError as error:
        raise statuses.bad_request(str(error)) from None
    return decoded


class _TypeError(Exception):
    """A value that does not fit its field, in Go's words."""


@dataclass(slots=True)
class _Walk:
    """One pass over an object; collects the paths of unknown fields."""

    unknown: list[str] = field(default_factory=list)

    def object(self, obj: Manifest, schema: Schema) -> Any:
        """An object of a built-in kind."""
        return self._typed(obj, schema, _Place("", schema.definition.rpartition(".")[2], ""))

    def custom_object(self, obj: Manifest, schema: Schema) -> Any:
        """A custom object: metadata as everywhere, the rest without what the schema does not know."""
        meta = named(OBJECT_META)
        rest = self._pruned({key: value for key, value in obj.items() if key != "metadata"}, schema, "", root=True)
        place = _Place("metadata", "ObjectMeta", "metadata")
        return {**rest, "metadata": self._typed(obj.get("metadata") or {}, meta, place)}

    def _typed(self, value: Any, schema: Schema, place: _Place) -> Any:
        if schema.preserves:
            return copied(value)
        if schema.is_quantity or schema.is_int_or_string or schema.type == "":
            return _special(value, schema, place)
        if isinstance(value, dict) and schema.type == "object":
            return self._typed_map(value, schema, place)
        if isinstance(value, list) and schema.type == "array":
            items = schema.items
            return [self._typed(item, items, place.item(at)) for at, item in enumerate(value) if item is not None]
        return _scalar(value, schema, place)

    def _typed_map(self, value: dict[str, Any], schema: Schema, place: _Place) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, item in value.items():
            if not schema.knows(key):
                self.unknown.append(place.path_of(key))
                continue
            child = schema.child(key)
            if item is None or (child.is_plain_text and isinstance(item, str)):
                # By far the most frequent: no place is needed for what cannot be wrong.
                decoded = item
            else:
                decoded = self._typed(item, child, place.step(key, schema))
            if not (schema.declares(key) and _is_left_out(key, decoded, child, schema)):
                result[key] = decoded if decoded is not None else ""
        return result

    def _pruned(self, value: Any, schema: Schema, path: str, *, root: bool = False) -> Any:
        if isinstance(value, list):
            return [self._pruned(item, schema.items, f"{path}[{at}]") for at, item in enumerate(value)]
        if not isinstance(value, dict):
            return value
        kept = _EMBEDDED if root or schema.raw.get("x-kubernetes-embedded-resource") else frozenset()
        result: dict[str, Any] = {}
        for key, item in value.items():
            if key in kept:
                result[key] = copied(item)
            elif schema.knows(key):
                result[key] = self._pruned(item, schema.child(key), f"{path}.{key}" if path else key)
            else:
                self.unknown.append(f"{path}.{key}" if path else key)
        return result


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in an object a value stands, and how Go names that."""

    path: str
    struct: str
    """The Go struct that the field belongs to."""
    field: str
    """The fields on the way, without list positions and keys of maps."""

    def path_of(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def step(self, key: str, schema: Schema) -> _Place:
        if not schema.declares(key):
            return _Place(self.path_of(key), self.struct, self.field)
        struct = schema.definition.rpartition(".")[2] or self.struct
        return _Place(self.path_of(key), struct, f"{self.field}.{key}" if self.field else key)

    def item(self, at: int) -> _Place:
        return _Place(f"{self.path}[{at}]", self.struct, self.field)


def _is_left_out(key: str, value: Any, child: Schema, schema: Schema) -> bool:
    """Whether Go's encoder leaves the field out, since it holds nothing."""
    if value is None or child.preserves:
        return value is None
    if value is False:
        return key in _PLAIN_BOOLEANS
    if value == "" and isinstance(value, str):
        return key not in schema.required and key not in _TEXT_POINTERS
    is_struct = bool(child.properties) or not child.additional
    return value == [] or (value == {} and not is_struct)


def _special(value: Any, schema: Schema, place: _Place) -> Any:
    """Quantities and values that are a number or a text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _mismatch(value, schema, place)
    if not schema.is_quantity:
        return value
    try:
        return quantities.canonical_resource(value)
    except quantities.QuantityError as error:
        raise _TypeError(str(error)) from None


def _scalar(value: Any, schema: Schema, place: _Place) -> Any:
    kind = schema.type
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "string" and isinstance(value, str):
        return _text(value, schema)
    if kind == "integer" and is_number and value == int(value):
        return int(value)
    if (kind == "boolean" and isinstance(value, bool)) or (kind == "number" and is_number):
        return value
    raise _mismatch(value, schema, place)


def _text(value: str, schema: Schema) -> str:
    try:
        if schema.definition == TIME:
            return times.normal_seconds(value)
        if schema.definition == MICRO_TIME:
            return times.normal_micros(value)
    except times.TimeError as error:
        raise _TypeError(str(error)) from None
    if schema.format == "byte":
        try:
            base64.b64decode(value, validate=True)
        except binascii.Error:
            good = len(value) - len(value.lstrip(_BASE64))
            at = good if good < len(value) else len(value) // 4 * 4
            raise _TypeError(f"illegal base64 data at input byte {at}") from None
    return value


def _mismatch(value: Any, schema: Schema, place: _Place) -> _TypeError:
    return _TypeError(
        f"json: cannot unmarshal {_go_value(value, schema)} into Go struct field {place.struct}.{place.field} "
        f"of type {_go_type(schema)}"
    )


def _go_value(value: Any, schema: Schema) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, float) and schema.type == "integer":
        return f"number {value}"
    kinds = ((str, "string"), (Mapping, "object"), (list, "array"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "number")


def _go_type(schema: Schema) -> str:
    if schema.definition:
        return ".".join(schema.definition.rsplit(".", 2)[1:])
    if schema.type == "integer":
        return schema.format or "int64"
    if schema.type == "array":
        return f"[]{_go_type(schema.items)}"
    if schema.type == "object":
        return f"map[string]{_go_type(schema.child('*'))}"
    return _GO_TYPES.get(schema.type, "interface {}")


def _refusal(resource: Resource, patched: str | None, why: str) -> statuses.ApiError:
    if patched is not None:
        quoted = patched.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return statuses.invalid("", "", "", [Cause("FieldValueInvalid", "patch", f'Invalid value: "{quoted}": {why}')])
    subject = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
    return statuses.bad_request(f"{subject}: {why}")
