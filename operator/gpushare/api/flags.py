"""Command lines and environments of the processes that take NVIDIA's places, read with the precedence of NVIDIA's programs.

Pure: a table of flags, argv and environ in, values out. No library does what those programs do: a variable that is present
but empty overrides the configuration file, and a flag that nobody set leaves the matter to the file. Used by the modules
that hold the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from gpushare.errors import UsageError

E = TypeVar("E", bound=StrEnum)
Reader = Callable[[Sequence[str]], Any]
"""From all texts given, more than one only for a repeated flag. Raises ValueError with what is expected."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Flag:
    """One thing that can be said, by any of its names or variables."""

    names: tuple[str, ...]
    variables: tuple[str, ...]
    """The first that is present counts."""
    read: Reader
    group: str = "options"
    key: str = ""
    """Name of the field in its group."""
    help: str = ""
    """For `--help`: what it does, which values it takes, and what holds when nobody says it."""

    @property
    def is_switch(self) -> bool:
        """May stand without a value, and takes one only after `=`."""
        return self.read is switch


def flag(name: str, *variables: str, alias: str = "", read: Reader | None = None, **keywords: Any) -> Flag:
    """A row of a table; its key is the name, unless told otherwise, and its value a text."""
    spellings = (name, *filter(None, alias.split()))
    keywords.setdefault("key", name.replace("-", "_"))
    return Flag(names=spellings, variables=variables, read=read or text, **keywords)


def parse(flags: Sequence[Flag], argv: Sequence[str], environ: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """What was said, by group and key; what nobody said is not in it.

    Raises:
        UsageError: an unknown flag, or a value that cannot be.
    """
    found = dict(_read_environ(flags, environ))
    found.update(_read_argv(flags, argv))
    groups: dict[str, dict[str, Any]] = {flag.group: {} for flag in flags}
    for flag, value in found.items():
        groups[flag.group][flag.key] = value
    return groups


def build_usage(command: str, flags: Iterable[Flag]) -> list[str]:
    """The lines of `--help`."""
    lines = [f"usage: {command} [flags]", "", "flags, each with the variable that says the same:"]
    for flag in flags:
        spelled = ", ".join(f"-{name}" if len(name) == 1 else f"--{name}" for name in flag.names)
        value = "" if flag.is_switch else " VALUE"
        lines.append(f"  {spelled}{value} ({', '.join(flag.variables)})")
        if flag.help:
            lines.append(f"      {flag.help}")
    return lines


def _read_environ(flags: Sequence[Flag], environ: Mapping[str, str]) -> Iterator[tuple[Flag, Any]]:
    for flag in flags:
        variable = next((name for name in flag.variables if name in environ), None)
        if variable is not None:
            yield flag, _read(flag, variable, [environ[variable]])


def _read_argv(flags: Sequence[Flag], argv: Sequence[str]) -> Iterator[tuple[Flag, Any]]:
    by_name = {name: flag for flag in flags for name in flag.names}
    texts: dict[Flag, list[str]] = {}
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        name, has_value, value = word.lstrip("-").partition("=")
        flag = by_name.get(name) if word.startswith("-") else None
        if flag is None:
            raise UsageError(f"unknown {'flag' if word.startswith('-') else 'argument'} {word!r}; see --help")
        if not has_value:
            if not flag.is_switch and not rest:
                raise UsageError(f"--{name}: a value is missing")
            value = "true" if flag.is_switch else rest.pop(0)
        texts.setdefault(flag, []).append(value)
    for flag, values in texts.items():
        yield flag, _read(flag, f"--{flag.names[0]}", values)


def _read(flag: Flag, source: str, texts: Sequence[str]) -> Any:
    try:
        return flag.read(texts)
    except ValueError as error:
        raise UsageError(f"{source}: {error}") from error


def text(texts: Sequence[str]) -> str:
    """Any text."""
    return texts[-1]


def switch(texts: Sequence[str]) -> bool:
    """The spellings of Go's ParseBool; an empty variable is false, as in NVIDIA's programs."""
    if texts[-1] in {"1", "t", "T", "true", "TRUE", "True"}:
        return True
    if texts[-1] in {"", "0", "f", "F", "false", "FALSE", "False"}:
        return False
    raise ValueError(f"{texts[-1]!r} is neither true nor false")


def words(texts: Sequence[str]) -> tuple[str, ...]:
    """Texts between commas."""
    return tuple(word.strip() for text in texts for word in text.split(",") if word.strip())


def choice(kind: type[E]) -> Callable[[Sequence[str]], E]:
    """One word of an enumeration."""
    return lambda texts: _one_of(kind, texts[-1])


def choices(kind: type[E]) -> Callable[[Sequence[str]], tuple[E, ...]]:
    """Words of an enumeration, at least one."""
    return lambda texts: tuple(_one_of(kind, word) for word in words(texts) or ("",))


def _one_of(kind: type[E], text: str) -> E:
    try:
        return kind(text)
    except ValueError:
        raise ValueError(f"{text!r} is none of {', '.join(kind)}") from None


def discovery(texts: Sequence[str]) -> str:
    """How devices are found."""
    if texts[-1] not in {"auto", "nvml"}:
        raise ValueError(f"{texts[-1]!r} is none of auto, nvml")
    return texts[-1]


def port(texts: Sequence[str]) -> int:
    """A port number; 0 is one too."""
    if not (texts[-1].isascii() and texts[-1].isdecimal() and int(texts[-1]) < 2**16):
        raise ValueError(f"{texts[-1]!r} is no port number")
    return int(texts[-1])
