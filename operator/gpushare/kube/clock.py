"""The time of day as Kubernetes writes it. Used by whoever writes objects; what waits counts the seconds of the event loop."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> str:
    """RFC 3339 in whole seconds, `2026-11-29T12:00:00Z`."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
