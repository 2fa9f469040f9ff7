"""The ways in which a field can be wrong, as causes with the API server's opening words. Used by all that refuses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gpushare.sandbox.apiserver.objects.jsonvalues import quoted
from gpushare.sandbox.apiserver.statuses import Cause


def required(field: str, why: str = "") -> Cause:
    """A field that must be there and is not."""
    return Cause("FieldValueRequired", field, f"Required value: {why}" if why else "Required value")


def invalid(field: str, value: Any, why: str) -> Cause:
    """A value that breaks a rule."""
    return Cause("FieldValueInvalid", field, f"Invalid value: {quoted(value)}: {why}")


def all_invalid(field: str, value: Any, problems: Iterable[str]) -> Iterator[Cause]:
    """A value that breaks each of some rules."""
    return (invalid(field, value, problem) for problem in problems)


def unsupported(field: str, value: Any, allowed: Iterable[Any]) -> Cause:
    """A word that is none of those allowed."""
    words = ", ".join(quoted(each if isinstance(each, str) else quoted(each)) for each in allowed)
    return Cause("FieldValueNotSupported", field, f"Unsupported value: {quoted(value)}: supported values: {words}")


def forbidden(field: str, why: str) -> Cause:
    """A change or a combination that is not allowed."""
    return Cause("FieldValueForbidden", field, f"Forbidden: {why}")


def duplicate(field: str, value: Any) -> Cause:
    """A value that was there before."""
    return Cause("FieldValueDuplicate", field, f"Duplicate value: {quoted(value)}")


def not_found(field: str, value: Any) -> Cause:
    """A reference to something that the object does not have."""
    return Cause("FieldValueNotFound", field, f"Not found: {quoted(value)}")


def too_long(field: str, most: int) -> Cause:
    """A text with too many bytes."""
    return Cause("FieldValueTooLong", field, f"Too long: may not be more than {most} bytes")


def too_many(field: str, found: int, most: int) -> Cause:
    """A list or map with too many entries."""
    noun = "item" if most == 1 else "items"
    return Cause("FieldValueTooMany", field, f"Too many: {found}: must have at most {most} {noun}")


def at(parent: str, *steps: str | int) -> str:
    """The path of something below `parent`: `at("spec", "containers", 0, "name")`."""
    path = parent
    for step in steps:
        suffix = f"[{step}]" if isinstance(step, int) else f".{step}"
        path = f"{path}{suffix}" if path else str(step)
    return path


def key(parent: str, name: str) -> str:
    """The path of a map's entry: `spec.nodeSelector[a/b]`."""
    return f"{parent}[{name}]"
