"""Why a text is no YAML, for whoever wrote it: the line where the mistake is, not where reading ended. Used by `documents`."""

from __future__ import annotations

import re
from typing import Final

import yaml

from gpushare.errors import Problem

INVISIBLE: Final = re.compile("[\u00a0\u2000-\u200f\u202f\u2060\u3000\ufeff]")
"""Spaces that are none for YAML. They come with what is copied from web pages and chats, and nobody sees them."""
INVISIBLE_MESSAGE: Final = "holds a space that only looks like one, as copied from a web page; type it again"
_CANNOT: Final = "cannot be read as YAML"
_TAG: Final = re.compile(r"for the tag '([^']*)'")
_STANDARD_TAGS: Final = "tag:yaml.org,2002:"
_END: Final = "<stream end>"
_NO_COMMA: Final = "expected ','"
_OPENING: Final = {yaml.FlowSequenceStartToken: "[", yaml.FlowMappingStartToken: "{"}
_CLOSING: Final = (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken)
_PLAIN_WORDS: Final = {
    "mapping values are not allowed here": "; put text with a ':' in quotes, and check how this line is indented",
    "could not find expected ':'": " after this line's first word",
    "expected <block end>": "; indent this line like those that it belongs with",
}
"""What to do about what the parser says, by how that begins."""


def problem_of(error: Exception, text: str) -> Problem:
    """The one problem of a text that cannot be read."""
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        return Problem(path="", message=f"holds the control character #x{error.character:02x}; remove it", line=line)
    if not isinstance(error, yaml.MarkedYAMLError):
        return Problem(path="", message=f"{_CANNOT}: {error}")
    what = error.problem or error.context or "syntax error"
    if (_END in what or what.startswith(_NO_COMMA)) and (opened := _left_open(text)) is not None:
        return Problem(path="", message=f'{_CANNOT}: the "{opened[0]}" of this line is never closed', line=opened[1])
    mark = _mark_of(error)
    if mark is None:
        return Problem(path="", message=_message(what))
    there = "".join(text.splitlines()[mark.line : mark.line + 1])
    message = INVISIBLE_MESSAGE if INVISIBLE.search(there) else _message(what)
    return Problem(path="", message=message, line=mark.line + 1)


def _message(what: str) -> str:
    if "'\\t'" in what:
        return "a tab cannot indent YAML; use spaces"
    if (tag := _TAG.search(what)) is not None:
        return f'"{tag[1].replace(_STANDARD_TAGS, "!!")}" is a tag, and none is taken here; remove it'
    advice = next((advice for start, advice in _PLAIN_WORDS.items() if what.startswith(start)), "")
    return f"{_CANNOT}: {what}{advice}"


def _mark_of(error: yaml.MarkedYAMLError) -> yaml.Mark | None:
    # A key without a colon is noticed only where the next line begins.
    is_about_key = error.context == "while scanning a simple key"
    return error.context_mark if is_about_key else error.problem_mark or error.context_mark


def _left_open(text: str) -> tuple[str, int] | None:
    """The innermost bracket that no other closes, and its line."""
    opened: list[tuple[str, int]] = []
    try:
        for token in yaml.scan(text, Loader=yaml.SafeLoader):
            if type(token) in _OPENING:
                opened.append((_OPENING[type(token)], token.start_mark.line + 1))
            elif isinstance(token, _CLOSING) and opened:
                opened.pop()
    except yaml.YAMLError:
        pass
    return opened[-1] if opened else None
