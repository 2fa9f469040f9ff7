"""Amounts of resources that count things, and so are whole numbers. Read in pods, quotas and Nodes.

The API server writes them as short as it can: 3000 comes back from it as `3k`.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Final

MOST: Final = 2**31 - 1
"""More than any machine has; HAMi's figures end there too."""
_FORM: Final = re.compile(r"([+-]?[0-9]*\.?[0-9]*)([kMGTPEm]|[eE][+-]?[0-9]{1,3})?\Z")
_BINARY: Final = re.compile(r"[0-9.]+[KMGTPE]i\Z")
_POWERS: Final = {"m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


class AmountError(ValueError):
    """A text that is no amount; the message says what to write instead."""


def parse_whole(text: object, unit: str = "") -> int:
    """Reads an amount as people or the API server write it.

    Raises:
        AmountError: no number, negative, not whole, or larger than anything that there is.
    """
    written = str(text)
    advice = f"write a plain number of {unit}" if unit else "write a plain number"
    if _BINARY.match(written):
        raise AmountError(f'"{written}" is an amount of bytes; {advice}')
    found = _FORM.match(written)
    try:
        number = Decimal(found[1]) if found else None
    except InvalidOperation:
        number = None
    if found is None or number is None:
        raise AmountError(f'"{written}" is no number')
    suffix = found[2] or ""
    number = number.scaleb(_POWERS[suffix] if suffix in _POWERS else int(suffix[1:]))
    if number < 0:
        raise AmountError(f"{written} is negative; write 0 or more")
    if number > MOST:
        raise AmountError(f"{written} is more than there can be; {advice}")
    if number != number.to_integral_value():
        raise AmountError(f"{written} is not whole; write a whole number")
    return int(number)


def count_of(text: object) -> int:
    """The same of what a program wrote; 0 for anything else."""
    try:
        return parse_whole(text)
    except AmountError:
        return 0
