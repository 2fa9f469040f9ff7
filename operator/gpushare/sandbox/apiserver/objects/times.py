"""Times and durations as Kubernetes writes them: RFC 3339 in objects, `5m30s` in tables; errors in Go's words."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_PATTERN: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)")
_SECONDS: Final = "2006-01-02T15:04:05Z07:00"
_MICROS: Final = "2006-01-02T15:04:05.000000Z07:00"


class TimeError(ValueError):
    """A text that is no time; the message is Go's, which quotes what is left where it could not go on."""

    def __init__(self, text: str, layout: str, at: int = 0, wanted: str = "2006") -> None:
        super().__init__(f'parsing time "{text}" as "{layout}": cannot parse "{text[at:]}" as "{wanted}"')


def now() -> str:
    """The time as objects carry it."""
    return written(datetime.now(UTC))


def seconds_text(epoch_seconds: float) -> str:
    """A `Time`, of seconds since 1970."""
    return written(datetime.fromtimestamp(epoch_seconds, UTC))


def micro_text(epoch_seconds: float) -> str:
    """A `MicroTime`, of seconds since 1970."""
    return _written_micros(datetime.fromtimestamp(epoch_seconds, UTC))


def epoch_of(text: str) -> float:
    """Seconds since 1970 of either form. Raises TimeError."""
    return parse(text).timestamp()


def written(moment: datetime) -> str:
    """A time as objects carry it: whole seconds, of UTC."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def parse(text: str) -> datetime:
    """A time of an object, in UTC. Raises TimeError."""
    try:
        if _PATTERN.fullmatch(text):
            return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise TimeError(text, _SECONDS)


def is_time(text: str) -> bool:
    """Whether `parse` takes a text."""
    try:
        parse(text)
    except TimeError:
        return False
    return True


def normal_seconds(text: str) -> str:
    """A `Time` as the server stores it: UTC, whole seconds. Raises TimeError."""
    return written(parse(text))


def normal_micros(text: str) -> str:
    """A `MicroTime` as the server stores it: UTC, six digits, which it insists on. Raises TimeError."""
    match = _PATTERN.fullmatch(text)
    if match is not None and len(match[2] or "") != len(".000000"):
        raise TimeError(text, _MICROS, match.end(1), ".000000")
    return _written_micros(parse(text))


def age(text: str | None, now: datetime) -> str:
    """How long ago a time was, as `kubectl get` shows it."""
    if not text:
        return "<unknown>"
    try:
        return duration(now - parse(text))
    except TimeError:
        return "<invalid>"


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


def _written_micros(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
