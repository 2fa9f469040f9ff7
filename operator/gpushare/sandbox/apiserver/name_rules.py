"""The syntax of names, labels, annotations and keys, with the texts that say what is wrong. Called by all validation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final, TypeAlias

Rule: TypeAlias = Callable[[str], Iterable[str]]
"""Yields what is wrong with a text."""

_SUBDOMAIN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035: Final = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED: Final = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_CONFIG_KEY: Final = r"[-._a-zA-Z0-9]+"
_LONGEST_NAME: Final = 253
_LONGEST_LABEL: Final = 63
_QUALIFIED_TEXT: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_QUALIFIED}')"
)


def subdomain(text: str) -> Iterator[str]:
    """A DNS subdomain: the names of most objects."""
    yield from _length(text, _LONGEST_NAME)
    if not re.fullmatch(_SUBDOMAIN, text):
        yield (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
            f"and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
        )


def label(text: str) -> Iterator[str]:
    """A DNS label: namespaces, containers, volumes."""
    yield from _length(text, _LONGEST_LABEL)
    if not re.fullmatch(_LABEL, text):
        yield (
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
            f"with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
        )


def service_name(text: str) -> Iterator[str]:
    """A DNS label that starts with a letter."""
    yield from _length(text, _LONGEST_LABEL)
    if not re.fullmatch(_LABEL_1035, text):
        yield (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
            "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
            f"'{_LABEL_1035}')"
        )


def path_segment(text: str) -> Iterator[str]:
    """Whatever can stand between two slashes of a URL: the names of roles."""
    if text in (".", ".."):
        yield f"may not be '{text}'"
    for part in ("/", "%"):
        if part in text:
            yield f"may not contain '{part}'"


@lru_cache(maxsize=8192)
def qualified_name(text: str) -> tuple[str, ...]:
    """A label key, an annotation key, a finalizer: a name with an optional DNS prefix."""
    # Kept, since the same few keys come with every write of every object.
    return tuple(_check_qualified_name(text))


def _check_qualified_name(text: str) -> Iterator[str]:
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        yield f"a valid label key {_QUALIFIED_TEXT} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return
    if slash and not prefix:
        yield "prefix part must be non-empty"
    elif slash:
        yield from (f"prefix part {problem}" for problem in subdomain(prefix))
    if not name:
        yield "name part must be non-empty"
    else:
        yield from (f"name part {problem}" for problem in _length(name, _LONGEST_LABEL))
    if not re.fullmatch(_QUALIFIED, name):
        yield f"name part {_QUALIFIED_TEXT}"


@lru_cache(maxsize=8192)
def label_value(text: str) -> tuple[str, ...]:
    """The value of a label."""
    return tuple(_check_label_value(text))


def _check_label_value(text: str) -> Iterator[str]:
    yield from _length(text, _LONGEST_LABEL)
    if not re.fullmatch(_VALUE, text):
        yield (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
            "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation "
            f"is '{_VALUE}')"
        )


def config_key(text: str) -> Iterator[str]:
    """A key of a ConfigMap or Secret."""
    yield from _length(text, _LONGEST_NAME)
    if not re.fullmatch(_CONFIG_KEY, text):
        yield (
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
            f"or 'key-name', regex used for validation is '{_CONFIG_KEY}')"
        )
    if text in (".", ".."):
        yield f"must not be '{text}'"


def variable_name(text: str) -> Iterator[str]:
    """The name of an environment variable."""
    if re.search(r"[^ -~]|=", text):
        yield (
            "a valid environment variable name must consist only of printable ASCII characters other than '=' "
            "(e.g. 'my.env-name' or 'MY_ENV.NAME' or 'MyEnvName1')"
        )


def _length(text: str, most: int) -> Iterator[str]:
    if len(text.encode()) > most:
        yield f"must be no more than {most} bytes"
