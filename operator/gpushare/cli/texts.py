"""Reading what a command is given: a file, or `-` for what is typed or piped into it. Used by every command that takes a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpushare.errors import ConfigurationError, UsageError


def read_text(file: str) -> str:
    """The text of a file. Raises UsageError where there is none, or it is no UTF-8."""
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return content.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is no text"
        raise UsageError(f"{file}: {reason}") from error


def read_manifests(file: str) -> Iterator[dict[str, Any]]:
    """The objects in a file. Raises UsageError with each problem where they cannot be read."""
    from gpushare.plan import overlay  # late: not for commands that read no objects

    try:
        yield from overlay.read_manifests(read_text(file))
    except ConfigurationError as error:
        raise UsageError("\n".join(f"{file}: {problem}" for problem in error.problems)) from error
