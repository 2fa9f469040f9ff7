"""The log of a process of ours: one JSON object a line on standard error. Set up once, by the `main` of each process."""

from __future__ import annotations

import logging
import sys
import time
from typing import TextIO


def log_as_json(level: str = "info") -> None:
    """Has every logger of the process write to standard error what is at least of that level."""
    logging.basicConfig(level=level.upper(), handlers=[build_handler(sys.stderr)])


def build_handler(stream: TextIO) -> logging.Handler:
    """Writes `time` (RFC 3339, UTC), `level`, `name`, `message`, and the variables of the message besides."""
    from pythonjsonlogger.json import JsonFormatter  # late: the sandbox, which has a log of its own, needs none of it

    formatter = JsonFormatter(
        "%(asctime)s %(levelname)s %(name)s %(message)s", rename_fields={"asctime": "time", "levelname": "level"}
    )
    formatter.default_time_format, formatter.default_msec_format = "%Y-%m-%dT%H:%M:%S", "%s.%03dZ"
    formatter.converter = time.gmtime
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    return handler
