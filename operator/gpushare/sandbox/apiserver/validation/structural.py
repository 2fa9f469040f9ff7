"""Structural schemas: what is wrong with a value, in the words of Kubernetes' OpenAPI validation. Called by `custom`.

Types, required fields, keys of lists, and the keywords of `_RULES`; others, and combinations of schemas, let everything
through.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, Final, NamedTuple

from gpushare.sandbox.apiserver import field_errors
from gpushare.sandbox.apiserver.objects import times
from gpushare.sandbox.apiserver.objects.jsonvalues import compact
from gpushare.sandbox.apiserver.objects.schemas import ANYTHING, Schema
from gpushare.sandbox.apiserver.statuses import Cause

_PLAIN_TYPES: Final[Mapping[str, type]] = {"string": str, "integer": int, "boolean": bool}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands."""

    steps: tuple[str, ...]
    below: int
    """How many steps the texts leave out, while the cause's field has them all."""

    def child(self, step: str) -> Place:
        """The place of a field, or with a step like `[0]` of a list item."""
        return Place((*self.steps, step), self.below)

    @property
    def field(self) -> str:
        """The whole path, `spec.list[0].k`."""
        return ".".join(self.steps).replace(".[", "[")

    @property
    def spoken(self) -> str:
        """The path as texts have it."""
        return ".".join(self.steps[self.below :]).replace(".[", "[")


def check(value: Any, schema: Schema, place: Place) -> Iterator[Cause]:
    """Everything in which a value does not follow its schema."""
    if not _has_type(value, schema):
        yield _wrong_type(place, schema.type or "integer,string", _type_of(value))
        return
    if value is None:
        return
    if isinstance(value, list):
        for at, item in enumerate(value):
            if not _is_plainly_right(item, schema.items):
                yield from check(item, schema.items, place.child(f"[{at}]"))
    if keywords := _keywords(schema):
        yield from _check_rules(value, schema, place, keywords)
    if isinstance(value, dict):
        yield from _check_fields(value, schema, place)


def check_lists(value: Any, schema: Schema, place: Place) -> Iterator[Cause]:
    """Items that lists which are maps or sets have twice."""
    if isinstance(value, dict):
        for name, item in value.items():
            if isinstance(item, dict | list):
                yield from check_lists(item, schema.child(name), place.child(name))
    elif isinstance(value, list):
        seen: set[str] = set()
        for at, item in enumerate(value):
            here = place.child(f"[{at}]")
            if schema.list_type != "atomic":
                identity = compact(_identity(item, schema))
                if identity in seen:
                    yield field_errors.duplicate(here.field, _identity(item, schema))
                seen.add(identity)
            yield from check_lists(item, schema.items, here)


def _is_plainly_right(value: Any, schema: Schema) -> bool:
    """Whether a value has its type, and its schema asks for nothing more: so it is for most of them."""
    return type(value) is _PLAIN_TYPES.get(schema.type) and not _keywords(schema)


@lru_cache(maxsize=8192)
def _keywords(schema: Schema) -> tuple[str, ...]:
    """What the schema asks for besides a type."""
    return tuple(keyword for keyword in _RULES if keyword in schema.raw)


def _check_rules(value: Any, schema: Schema, place: Place, keywords: Sequence[str]) -> Iterator[Cause]:
    rules = ((_RULES[keyword], schema.raw[keyword]) for keyword in keywords)
    found = (
        rule.cause(place, value, limit)
        for rule, limit in rules
        if isinstance(value, rule.type) and not isinstance(value, bool) and rule.is_broken(value, limit)
    )
    # Of texts a real server names only the first thing that is wrong.
    return islice(found, 1) if isinstance(value, str) else found


def _identity(item: Any, schema: Schema) -> Any:
    if schema.list_type == "map" and isinstance(item, Mapping):
        return {key: item[key] for key in schema.list_keys if key in item}
    return item


def _check_fields(value: Mapping[str, Any], schema: Schema, place: Place) -> Iterator[Cause]:
    for name in schema.required:
        if name not in value and not (not place.steps and name in ("apiVersion", "kind", "metadata")):
            yield field_errors.required(place.child(name).field)
    for name, item in value.items():
        child = schema.child(name)
        if child is not ANYTHING and not _is_plainly_right(item, child):
            yield from check(item, child, place.child(name))


def _has_type(value: Any, schema: Schema) -> bool:
    found = _type_of(value)
    if schema.is_int_or_string:
        return found in ("integer", "string") or (value is None and bool(schema.raw.get("nullable")))
    if value is None:
        return not schema.type or bool(schema.raw.get("nullable"))
    if schema.type == "number":
        return found in ("integer", "number")
    if schema.type == "integer":
        return found == "integer" or (isinstance(value, float) and value.is_integer())
    return not schema.type or found == schema.type


def _type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    names = ((str, "string"), (int, "integer"), (float, "number"), (list, "array"), (dict, "object"))
    return next((name for kind, name in names if isinstance(value, kind)), "null")


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of Go's syntax; one that Python does not know lets everything through."""
    try:
        return re.compile(pattern)
    except re.error:
        return re.compile("")


class _Rule(NamedTuple):
    """What a keyword asks of values of a type, and what is said where it is not so."""

    type: Any
    is_broken: Callable[[Any, Any], bool]
    cause: Callable[[Place, Any, Any], Cause]


_NUMBER: Final = int | float
_RULES: Final[Mapping[str, _Rule]] = {
    "enum": _Rule(
        object, lambda value, words: value not in words,
        lambda place, value, words: field_errors.unsupported(place.field, value, words),
    ),
    "minimum": _Rule(
        _NUMBER, lambda value, least: value < least,
        lambda place, value, least: _should(place, value, f"be greater than or equal to {least}"),
    ),
    "maximum": _Rule(
        _NUMBER, lambda value, most: value > most,
        lambda place, value, most: _should(place, value, f"be less than or equal to {most}"),
    ),
    "minLength": _Rule(
        str, lambda value, least: len(value) < least,
        lambda place, value, least: _should(place, value, f"be at least {least} chars long"),
    ),
    "maxLength": _Rule(
        str, lambda value, most: len(value) > most, lambda place, _, most: field_errors.too_long(place.field, most)
    ),
    "pattern": _Rule(
        str, lambda value, pattern: not _compiled(pattern).search(value),
        lambda place, value, pattern: _should(place, value, f"match '{pattern}'"),
    ),
    "format": _Rule(
        str, lambda value, name: name == "date-time" and not times.is_time(value),
        lambda place, value, name: _wrong_type(place, name, value),
    ),
    "minItems": _Rule(
        list, lambda value, least: len(value) < least,
        lambda place, value, least: _should(place, len(value), f"have at least {least} items"),
    ),
    "maxItems": _Rule(
        list, lambda value, most: len(value) > most,
        lambda place, value, most: field_errors.too_many(place.field, len(value), most),
    ),
    "maxProperties": _Rule(
        dict, lambda value, most: len(value) > most,
        lambda place, value, most: field_errors.too_many(place.field, len(value), most),
    ),
}  # fmt: skip


def _should(place: Place, value: Any, what: str) -> Cause:
    return field_errors.invalid(place.field or "<nil>", value, f"{place.spoken} in body should {what}")


def _wrong_type(place: Place, wanted: str, found: str) -> Cause:
    text = f'Invalid value: "{found}": {place.spoken} in body must be of type {wanted}: "{found}"'
    return Cause("FieldValueTypeInvalid", place.field, text)
