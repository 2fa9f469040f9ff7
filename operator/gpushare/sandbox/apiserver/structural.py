"""Structural schemas: what is wrong with a value, in the words of Kubernetes' OpenAPI validation. Called by `crds`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from gpushare.sandbox.apiserver import field_errors, formats
from gpushare.sandbox.apiserver.jsonvalues import compact
from gpushare.sandbox.apiserver.schemas import ANYTHING, Schema
from gpushare.sandbox.apiserver.statuses import Cause

_COMBINATIONS: Final = ("allOf", "anyOf", "oneOf", "not")
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
    keywords = _keywords(schema)
    if keywords:
        yield from _check_rules(value, schema, place, keywords)
        yield from _check_combinations(value, schema, place)
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
    return tuple(keyword for keyword in (*_RULES, *_COMBINATIONS) if keyword in schema.raw)


def _check_rules(value: Any, schema: Schema, place: Place, keywords: Sequence[str]) -> Iterator[Cause]:
    rules = (_RULES[keyword] for keyword in keywords if keyword in _RULES)
    found = (cause for rule in rules for cause in rule(value, schema, place))
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


def _check_combinations(value: Any, schema: Schema, place: Place) -> Iterator[Cause]:
    for raw in schema.raw.get("allOf", ()):
        yield from check(value, Schema(raw), place)
    name = place.spoken
    if (choices := schema.raw.get("anyOf")) and not any(_fits(value, raw, place) for raw in choices):
        yield _invalid(place, "", f'"{name}" must validate at least one schema (anyOf)')
    if choices := schema.raw.get("oneOf"):
        fitting = sum(_fits(value, raw, place) for raw in choices)
        if fitting != 1:
            found = "none valid" if not fitting else f"{fitting} valid alternatives"
            yield _invalid(place, "", f'"{name}" must validate one and only one schema (oneOf). Found {found}')
    if (excluded := schema.raw.get("not")) is not None and _fits(value, excluded, place):
        yield _invalid(place, "", f'"{name}" must not validate the schema (not)')


def _fits(value: Any, raw: Mapping[str, Any], place: Place) -> bool:
    return next(check(value, Schema(raw), place), None) is None


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


def _enum(value: Any, schema: Schema, place: Place) -> Iterator[Cause]:
    if value not in schema.raw["enum"]:
        yield field_errors.unsupported(place.field, value, schema.raw["enum"])


def _minimum(value: Any, schema: Schema, place: Place) -> Iterator[Cause]:
    limit, exclusive = schema.raw["minimum"], schema.raw.get("exclusiveMinimum")
    if _is_number(value) and (value <= limit if exclusive else value < limit):
        yield _out_of_range(place, value, f"greater than {'' if exclusive else 'or equal to '}{limit}")


def _maximum(value: Any, schema: Schema, place: Place) -> Iterator[Cause]:
    limit, exclusive = schema.raw["maximum"], schema.raw.get("exclusiveMaximum")
    if _is_number(value) and (value >= limit if exclusive else value > limit):
        yield _out_of_range(place, value, f"less than {'' if exclusive else 'or equal to '}{limit}")


def _multiple_of(value: Any, schema: Schema, place: Place) -> Iterator[Cause]:
    step = schema.raw["multipleOf"]
    if _is_number(value) and value % step:
        yield _invalid(place, value, f"{place.spoken} in body should be a multiple of {step}")


def _min_length(value: Any, schema: Schema, place: Place) -> Iterator[Cause]:
    least = schema.raw["minLength"]
    if isinstance(value, str) and len(value) < least:
        yield _invalid(place, value, f"{place.spoken} in body should be at least {least} chars long")


def _max_length(value: Any, schema: Schema, place: Place) -> Iterator[Cause]:
    most = schema.raw["maxLength"]
    if isinstance(value, str) and len(value) > most:
        yield field_errors.too_long(place.field, most)


def _pattern(value: Any, schema: Schema, place: Place) -> Iterator[Cause]:
    pattern = schema.raw["pattern"]
    if isinstance(value, str) and not _compiled(pattern).search(value):
        yield _invalid(place, value, f"{place.spoken} in body should match '{pattern}'")


def _format(value: Any, schema: Schema, place: Place) -> Iterator[Cause]:
    if isinstance(value, str) and not formats.matches(value, schema.format):
        yield _wrong_type(place, schema.format, value)


def _min_items(value: Any, schema: Schema, place: Place) -> Iterator[Cause]:
    least = schema.raw["minItems"]
    if isinstance(value, list) and len(value) < least:
        yield _invalid(place, len(value), f"{place.spoken} in body should have at least {least} items")


def _max_items(value: Any, schema: Schema, place: Place) -> Iterator[Cause]:
    if isinstance(value, list):
        yield from _too_many(place, len(value), schema.raw["maxItems"])


def _unique_items(value: Any, schema: Schema, place: Place) -> Iterator[Cause]:
    if schema.raw["uniqueItems"] and isinstance(value, list) and len(set(map(compact, value))) < len(value):
        yield _invalid(place, value, f"{place.spoken} in body shouldn't contain duplicates")


def _min_properties(value: Any, schema: Schema, place: Place) -> Iterator[Cause]:
    least = schema.raw["minProperties"]
    if isinstance(value, dict) and len(value) < least:
        yield _invalid(place, len(value), f"{place.spoken} in body should have at least {least} properties")


def _max_properties(value: Any, schema: Schema, place: Place) -> Iterator[Cause]:
    if isinstance(value, dict):
        yield from _too_many(place, len(value), schema.raw["maxProperties"])


_RULES: Final[Mapping[str, Callable[[Any, Schema, Place], Iterator[Cause]]]] = {
    "enum": _enum,
    "minimum": _minimum,
    "maximum": _maximum,
    "multipleOf": _multiple_of,
    "minLength": _min_length,
    "maxLength": _max_length,
    "pattern": _pattern,
    "format": _format,
    "minItems": _min_items,
    "maxItems": _max_items,
    "uniqueItems": _unique_items,
    "minProperties": _min_properties,
    "maxProperties": _max_properties,
}


def _too_many(place: Place, found: int, most: int) -> Iterator[Cause]:
    if found > most:
        yield field_errors.too_many(place.field, found, most)


def _out_of_range(place: Place, value: Any, range_text: str) -> Cause:
    return _invalid(place, value, f"{place.spoken} in body should be {range_text}")


def _wrong_type(place: Place, wanted: str, found: str) -> Cause:
    name = place.spoken
    text = f'Invalid value: "{found}": {name} in body must be of type {wanted}: "{found}"'
    return Cause("FieldValueTypeInvalid", place.field, text)


def _invalid(place: Place, value: Any, why: str) -> Cause:
    return field_errors.invalid(place.field or "<nil>", value, why)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of Go's syntax; one that Python does not know lets everything through."""
    try:
        return re.compile(pattern)
    except re.error:
        return re.compile("")
