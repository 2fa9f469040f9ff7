"""Durations as Go programs read them, `1h5m` or `60s`. Used for `flags.gfd.sleepInterval` and its flag."""

from __future__ import annotations

import math
import re
from typing import Final

_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_MOST_NANOSECONDS: Final = 2**63
_PART: Final = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_WHOLE: Final = re.compile(rf"[-+]?(?:{_PART.pattern})+", re.ASCII)


def read_duration(value: object) -> float:
    """Seconds of a duration: text with units, `infinite`, or a number of nanoseconds.

    Raises:
        ValueError: anything else, or less than nothing; the text says what to write.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value < _MOST_NANOSECONDS:
        seconds = value * 1e-9
    elif value == "infinite":
        return math.inf
    elif value == "0":
        seconds = 0.0
    elif isinstance(value, str) and _WHOLE.fullmatch(value):
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(value))
        seconds = -seconds if value.startswith("-") else seconds
    else:
        raise ValueError('not a duration; write a number with a unit, such as 60s or 1h5m, or "infinite"')
    if seconds < 0:
        raise ValueError("a negative duration makes no sense; write 60s or the like")
    return seconds
