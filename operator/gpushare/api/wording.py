"""Validation errors in the user's words: where, what is wrong, what to write instead. Used by `parsing`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError

from gpushare.api.documents import Document, Location, path_of
from gpushare.api.schema import OWN_ERROR, Configuration
from gpushare.errors import Problem

_ITEM: Final = 0
"""Stands for any position in a list."""
Keys = Mapping[tuple[str | int, ...], tuple[str, ...]]
"""The keys that each block takes, by where the block stands."""


def problems_of(error: ValidationError, document: Document) -> tuple[Problem, ...]:
    """Every error, with path and line, in the order of the text."""
    problems = [_problem_of(detail, document) for detail in error.errors(include_url=False)]
    return tuple(sorted(problems, key=lambda problem: (problem.line or 0, problem.path)))


def _problem_of(detail: Any, document: Document) -> Problem:
    location: Location = detail["loc"]
    if detail["type"] in ("extra_forbidden", "invalid_key"):
        message = _unknown_key(location)
    else:
        message = _MESSAGES.get(detail["type"], _fallback)(detail)
    return Problem(path=path_of(location), message=message, line=document.line_of(location))


def _unknown_key(location: Location) -> str:
    block = tuple(_ITEM if isinstance(part, int) else part for part in location[:-1])
    key = str(location[-1])
    keys = _keys()
    siblings = keys.get(block, ())
    homes = [place for place, known in keys.items() if key in known and place != block]
    if homes:
        # A home below the wrong place is meant more often than one elsewhere: `sharing.resources`.
        home = min(homes, key=lambda place: (place[: len(block)] != block, len(place), place != _FAVOURITE))
        return f'"{key}" belongs under {_place(home)}'
    close = [known for known in siblings if known.lower() == key.lower()] or difflib.get_close_matches(key, siblings, 1)
    if close:
        return f'unknown key; did you mean "{close[0]}"?'
    return f"unknown key; known here: {', '.join(sorted(siblings))}"


_FAVOURITE: Final = ("sharing", "timeSlicing")


def _place(block: Sequence[str | int]) -> str:
    if not block:
        return "the top level"
    return path_of(block) if block[-1] != _ITEM else f"each entry of {path_of(block[:-1])}"


def _keys() -> Keys:
    return dict(_keys_below(Configuration, ()))


def _keys_below(
    model: type[BaseModel], block: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], tuple[str, ...]]]:
    fields = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
    yield block, tuple(fields)
    for name, annotation in fields.items():
        for found, is_list in _models_in(annotation):
            yield from _keys_below(found, (*block, name, _ITEM) if is_list else (*block, name))


def _models_in(annotation: Any) -> Iterator[tuple[type[BaseModel], bool]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, False
        return
    is_list = getattr(annotation, "__origin__", None) is list
    for argument in get_args(annotation):
        for found, inside_list in _models_in(argument):
            yield found, is_list or inside_list


def _own(detail: Any) -> str:
    return str(detail["ctx"]["text"])


def _number(detail: Any) -> str:
    value = detail["input"]
    if isinstance(value, str) and value.isdecimal():
        return f"is text; write {value} without quotes"
    return f"must be a whole number, not {_shown(value)}"


def _choice(detail: Any) -> str:
    words = str(detail["ctx"]["expected"]).replace(" or ", ", ").replace("'", "")
    return f"must be one of {words}, not {_shown(detail['input'])}"


def _block(detail: Any) -> str:
    return f"must hold keys, indented below it, not {_shown(detail['input'])}"


def _fallback(detail: Any) -> str:
    return f"{detail['msg'][:1].lower()}{detail['msg'][1:]}"


_MESSAGES: Final[Mapping[str, Callable[[Any], str]]] = {
    OWN_ERROR: _own,
    "missing": lambda _: "is missing",
    "int_type": _number,
    "string_type": lambda detail: f"must be text, not {_shown(detail['input'])}; put it in quotes",
    "bool_type": lambda detail: f"must be true or false, not {_shown(detail['input'])}",
    "enum": _choice,
    "literal_error": _choice,
    "model_type": _block,
    "list_type": lambda detail: f'must be a list, each item after a "-", not {_shown(detail["input"])}',
    "too_short": lambda _: "is empty; name at least one resource",
    "greater_than_equal": lambda detail: f"must be at least {detail['ctx']['ge']}",
}


def _shown(value: Any) -> str:
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value[:40]}"'
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list):
        return "a list"
    return "keys" if isinstance(value, dict) else "this"
