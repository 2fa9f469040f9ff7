"""The syntax of names, labels, annotations and keys, with the texts that say what is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final, TypeAlias

Rule: TypeAlias = Callable[[str], Iterable[str]]
"""Says what is wrong with a text."""

_LONGEST_NAME: Final = 253
_LONGEST_LABEL: Final = 63
_ENDS: Final = "must start and end with an alphanumeric character"
_QUALIFIED: Final = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_QUALIFIED_TEXT: Final = (
    f"must consist of alphanumeric characters, '-', '_' or '.', and {_ENDS} (e.g. 'MyName',  or 'my.name',  or '123-abc', "
    f"regex used for validation is '{_QUALIFIED}')"
)


def _rule(what: str, examples: str, pattern: str, most: int) -> Rule:
    """Not longer than `most` bytes, and all of it as the pattern says. Answers are kept: the same few texts come again."""
    matches = re.compile(pattern).fullmatch
    text = f"{what} (e.g. {examples}, regex used for validation is '{pattern}')"

    @lru_cache(maxsize=8192)
    def check(value: str) -> tuple[str, ...]:
        return (*_length(value, most), *(() if matches(value) else (text,)))

    return check


subdomain: Final = _rule(
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and {_ENDS}",
    "'example.com'",
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
    _LONGEST_NAME,
)
"""The names of most objects."""
label: Final = _rule(
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and {_ENDS}",
    "'my-name',  or '123-abc'",
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?",
    _LONGEST_LABEL,
)
"""Namespaces, containers, volumes."""
service_name: Final = _rule(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end "
    "with an alphanumeric character",
    "'my-name',  or 'abc-123'",
    r"[a-z]([-a-z0-9]*[a-z0-9])?",
    _LONGEST_LABEL,
)
label_value: Final = _rule(
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and {_ENDS}",
    "'MyValue',  or 'my_value',  or '12345'",
    rf"({_QUALIFIED})?",
    _LONGEST_LABEL,
)
_plain_config_key: Final = _rule(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    "'key.name',  or 'KEY_NAME',  or 'key-name'",
    r"[-._a-zA-Z0-9]+",
    _LONGEST_NAME,
)


def config_key(text: str) -> Iterator[str]:
    """A key of a ConfigMap or Secret."""
    yield from _plain_config_key(text)
    if text in (".", ".."):
        yield f"must not be '{text}'"


def path_segment(text: str) -> Iterator[str]:
    """Whatever can stand between two slashes of a URL: the names of roles."""
    if text in (".", ".."):
        yield f"may not be '{text}'"
    yield from (f"may not contain '{part}'" for part in ("/", "%") if part in text)


@lru_cache(maxsize=8192)
def qualified_name(text: str) -> tuple[str, ...]:
    """A label key, an annotation key, a finalizer: a name with an optional DNS prefix."""
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
