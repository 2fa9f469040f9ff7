"""Times and durations as Kubernetes writes them: RFC 3339 in objects, `5m30s` in tables; errors in Go's words."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

SECONDS_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
MICROS_LAYOUT: Final = "2006-01-02T15:04:05.000000Z07:00"
_PIECES: Final = (
    (r"\d{4}", "2006"), ("-", "-"), (r"(?:0[1-9]|1[0-2])", "01"), ("-", "-"), (r"\d{2}", "02"), ("T", "T"),
    (r"\d{2}", "15"), (":", ":"), (r"\d{2}", "04"), (":", ":"), (r"\d{2}", "05"),
)  # fmt: skip
_ZONE: Final = (r"(?:Z|[+-]\d{2}:\d{2})", "Z07:00")


class TimeError(ValueError):
    """A text that is no time; the message is Go's."""


def parse(text: str) -> datetime:
    """A time of an object, in UTC. Raises TimeError."""
    return _parse(text, SECONDS_LAYOUT)


def normal_seconds(text: str) -> str:
    """A `Time` as the server stores it: UTC, whole seconds. Raises TimeError."""
    return _parse(text, SECONDS_LAYOUT).strftime("%Y-%m-%dT%H:%M:%SZ")


def normal_micros(text: str) -> str:
    """A `MicroTime` as the server stores it: UTC, six digits, which it insists on. Raises TimeError."""
    return _parse(text, MICROS_LAYOUT).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def age(text: str | None, now: datetime) -> str:
    """How long ago a time was, as `kubectl get` shows it."""
    if not text:
        return "<unknown>"
    try:
        passed = now - parse(text)
    except TimeError:
        return "<invalid>"
    return duration(passed)


def duration(passed: timedelta) -> str:
    """A duration in at most two units, rougher the longer it is."""
    seconds = int(passed.total_seconds())
    if seconds < -1:
        return "<invalid>"
    seconds = max(seconds, 0)
    if seconds < 60 * 2:
        return f"{seconds}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 60 * 3:
        return _two(minutes, "m", seconds % 60 if minutes < 10 else 0, "s")
    if hours < 48:
        return _two(hours, "h", minutes % 60 if hours < 8 else 0, "m")
    if days < 365 * 2:
        return _two(days, "d", hours % 24 if days < 8 else 0, "h")
    return _two(days // 365, "y", days % 365 if days < 365 * 8 else 0, "d")


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


@lru_cache(maxsize=4096)
def _parse(text: str, layout: str) -> datetime:
    micros = (r"\.\d{6}(?!\d)", ".000000") if layout == MICROS_LAYOUT else (r"(?:\.\d+)?", "")
    rest = text
    for pattern, piece in (*_PIECES, micros, _ZONE):
        match = re.match(pattern, rest)
        if match is None:
            raise TimeError(f'parsing time "{text}" as "{layout}": cannot parse "{rest}" as "{piece}"')
        rest = rest[match.end() :]
    if rest:
        raise TimeError(f'parsing time "{text}": extra text: "{rest}"')
    try:
        return datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text)).astimezone(UTC)
    except ValueError:
        raise TimeError(f'parsing time "{text}": day out of range') from None
