"""Kubernetes quantities: `500m`, `512Gi`, `12e3`. Exact numbers in, the API server's short form out.

Called by the defaults (which rewrite quantities as a real server does), the validation, and by whoever adds up resources:
the scheduler, the device manager.
"""

from __future__ import annotations

import re
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Final, TypeAlias

Text: TypeAlias = str | int | float
"""What JSON may hold where a quantity is meant."""

PATTERN: Final = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
WRONG_FORMAT: Final = f"quantities must match the regular expression '{PATTERN}'"
WRONG_NUMBER: Final = "unable to parse numeric part of quantity"
WRONG_SUFFIX: Final = "unable to parse quantity's suffix"

_SPLIT = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)\Z")
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIXES: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIXES: Final = {exponent: suffix for suffix, exponent in _BINARY.items()}
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)\Z")
_NANO: Final = Fraction(1, 10**9)
_MILLI: Final = Fraction(1, 1000)
_LARGEST_BINARY: Final = Fraction(2**63 - 1)
_KIBI: Final = 1024


class QuantityError(ValueError):
    """A text that is no quantity; the message is the API server's."""


class _Form(Enum):
    """The family of suffixes that a quantity was written with, and is written with again."""

    DECIMAL = "decimal"
    BINARY = "binary"
    EXPONENT = "exponent"


def parse(text: Text) -> Fraction:
    """The exact number behind a quantity; finer than nano is rounded away from zero, as a real server does.

    Raises:
        QuantityError: with the API server's words.
    """
    return _read(str(text))[0]


def parse_int(text: Text) -> int:
    """The number rounded up to a whole one: what the scheduler and the kubelet count with. Raises as `parse`."""
    return ceil(parse(text))


def canonical(text: Text) -> str:
    """The short form that a server stores: `0.5` is `500m`, `1024Mi` is `1Gi`. Raises as `parse`."""
    return _canonical(str(text), to_milli=False)


def canonical_resource(text: Text) -> str:
    """`canonical`, rounded up to thousandths: the form in resource lists (requests, capacity). Raises as `parse`."""
    return _canonical(str(text), to_milli=True)


@lru_cache(maxsize=4096)
def _canonical(text: str, *, to_milli: bool) -> str:
    value, form = _read(text)
    return _format(_round_up(value, _MILLI) if to_milli else value, form)


@lru_cache(maxsize=4096)
def _read(text: str) -> tuple[Fraction, _Form]:
    match = _SPLIT.match(text)
    if not text or match is None:
        raise QuantityError(WRONG_FORMAT)
    sign, whole, part, suffix = match.groups(default="")
    if not whole and not part:
        raise QuantityError(WRONG_NUMBER if sign or "." in text else WRONG_FORMAT)
    scale, form = _scale(suffix)
    value = Fraction(int(whole + part or "0"), 10 ** len(part)) * scale
    value = _round_up(value, _NANO)
    if form is _Form.BINARY:
        value = min(value, _LARGEST_BINARY)
        form = _Form.DECIMAL if 0 < value < 1 else form
    return (-value if sign == "-" else value), form


def _scale(suffix: str) -> tuple[Fraction, _Form]:
    if suffix in _DECIMAL:
        return Fraction(10) ** _DECIMAL[suffix], _Form.DECIMAL
    if suffix in _BINARY:
        return Fraction(2 ** _BINARY[suffix]), _Form.BINARY
    exponent = _EXPONENT.match(suffix)
    if exponent is None or abs(int(exponent[1])) > 1000:
        raise QuantityError(WRONG_SUFFIX)
    return Fraction(10) ** int(exponent[1]), _Form.EXPONENT


def _round_up(value: Fraction, step: Fraction) -> Fraction:
    """Away from zero: whoever asks for a little gets a little, never nothing."""
    steps = value / step
    if steps.denominator == 1:
        return value
    return (ceil(steps) if value > 0 else -ceil(-steps)) * step


def _format(value: Fraction, form: _Form) -> str:
    if value == 0:
        return "0"
    if form is _Form.BINARY and abs(value) >= _KIBI and value.denominator == 1:
        number, exponent = _reduce(value.numerator, _KIBI)
        return f"{number}{_BINARY_SUFFIXES.get(exponent * 10, '')}" if exponent else str(number)
    # Thousandths at a time until the number is whole, then back as far as zeroes allow.
    exponent = 0
    while value.denominator != 1:
        value *= 1000
        exponent -= 3
    number, thousands = _reduce(value.numerator, 1000)
    exponent += 3 * thousands
    if form is _Form.EXPONENT or exponent not in _DECIMAL_SUFFIXES:
        return f"{number}e{exponent}" if exponent else str(number)
    return f"{number}{_DECIMAL_SUFFIXES[exponent]}"


def _reduce(number: int, base: int) -> tuple[int, int]:
    exponent = 0
    while number % base == 0:
        number //= base
        exponent += 1
    return number, exponent
