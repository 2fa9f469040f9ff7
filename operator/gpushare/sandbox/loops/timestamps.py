"""Times as the API writes them. Used by all controllers of the sandbox."""

from __future__ import annotations

from datetime import UTC, datetime


def seconds_text(epoch_seconds: float) -> str:
    """RFC 3339 with whole seconds, the form of `metav1.Time`."""
    return datetime.fromtimestamp(epoch_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_text(epoch_seconds: float) -> str:
    """RFC 3339 with microseconds, the form of `metav1.MicroTime`."""
    return datetime.fromtimestamp(epoch_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def epoch_of(text: str) -> float:
    """Seconds since 1970 of either form. Raises ValueError when it is neither."""
    return datetime.fromisoformat(text).timestamp()
