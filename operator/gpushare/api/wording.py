"""Validation errors in the user's words: where, what is wrong, what to write instead. Used by `parsing`."""

from __future__ import annotations

import difflib
import functools
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
    """Every error, with path and line, in the order of the text. A key that is only misspelt is not missing besides."""
    if isinstance(document.data, dict) and {"apiVersion", "kind"} <= document.data.keys():
        return (Problem(path="", message=_MANIFEST.format(kind=str(document.data["kind"])[:40]), line=1),)
    details = error.errors(include_url=False)
    unknown = {tuple(detail["loc"]): _meant(detail["loc"]) for detail in details if detail["type"] in _UNKNOWN}
    misspelt = {(*location[:-1], meant) for location, meant in unknown.items() if meant}
    problems = [
        Problem(
            path=path_of(detail["loc"]),
            message=_message(detail, unknown.get(tuple(detail["loc"]))),
            line=document.line_of(detail["loc"]),
            only_ours=detail["type"] in _UNKNOWN,
        )
        for detail in details
        if not (detail["type"] == "missing" and tuple(detail["loc"]) in misspelt)
    ]
    return tuple(sorted(problems, key=lambda problem: (problem.line or 0, problem.path)))


def _message(detail: Any, meant: str | None) -> str:
    if meant is None:
        return _MESSAGES.get(detail["type"], _fallback)(detail)
    if meant:
        return f'unknown key; did you mean "{meant}"?'
    block, key = _block_of(detail["loc"]), str(detail["loc"][-1])
    homes = [place for place, known in _keys().items() if key in known and place != block]
    if not homes:
        return f"unknown key; known here: {', '.join(sorted(_keys().get(block, ())))}"
    # A home below the wrong place is meant more often than one elsewhere: `sharing.resources`.
    home = min(homes, key=lambda place: (place[: len(block)] != block, len(place), place != _FAVOURITE))
    return f'"{key}" belongs under {_place(home)}'


def _meant(location: Location) -> str:
    """The known key beside an unknown one that its writer meant; empty where that is no guess, or it belongs elsewhere."""
    keys, key = _keys(), str(location[-1])
    siblings = keys.get(_block_of(location), ())
    if any(key in known for known in keys.values()):
        return ""
    close = [known for known in siblings if known.lower() == key.lower()] or difflib.get_close_matches(key, siblings, 1)
    return close[0] if close else ""


def _block_of(location: Location) -> tuple[str | int, ...]:
    return tuple(_ITEM if isinstance(part, int) else part for part in location[:-1])


_MANIFEST: Final = "a whole {kind} stands here; write only the configuration, as it stands below a key of its data"
_UNKNOWN: Final = ("extra_forbidden", "invalid_key")
_FAVOURITE: Final = ("sharing", "timeSlicing")


def _place(block: Sequence[str | int]) -> str:
    if not block:
        return "the top level"
    return path_of(block) if block[-1] != _ITEM else f"each entry of {path_of(block[:-1])}"


@functools.cache
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


_WANTED: Final[Mapping[str, str]] = {
    "resources": "; list what is shared: name nvidia.com/gpu, replicas 4",
    "name": "; write a resource, such as nvidia.com/gpu",
    "replicas": "; write how many shares a device has, such as 4",
}
"""What to write for a key that is missing."""
_MESSAGES: Final[Mapping[str, Callable[[Any], str]]] = {
    OWN_ERROR: _own,
    "missing": lambda detail: f"is missing{_WANTED.get(str(detail['loc'][-1]), '')}",
    "int_type": _number,
    "string_type": lambda detail: f"must be text, not {_shown(detail['input'])}; put it in quotes",
    "bool_type": lambda detail: f"must be true or false, not {_shown(detail['input'])}",
    "enum": _choice,
    "literal_error": _choice,
    "model_type": _block,
    "list_type": lambda detail: f'must be a list, each item after a "-", not {_shown(detail["input"])}',
    "too_short": lambda _: "is empty; name at least one resource",
    "float_type": lambda detail: f"must be a number, not {_shown(detail['input'])}",
    "finite_number": lambda _: "must be a number that ends",
    "less_than_equal": lambda detail: f"must be at most {detail['ctx']['le']:g}",
    "greater_than_equal": lambda detail: f"must be at least {detail['ctx']['ge']:g}",
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
