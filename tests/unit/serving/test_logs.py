"""Log lines as a log pipeline reads them."""

from __future__ import annotations

import io
import json
import logging
from datetime import UTC, datetime

from gpushare.serving.logs import build_handler


def lines_of(record: logging.LogRecord) -> list[dict[str, object]]:
    stream = io.StringIO()
    build_handler(stream).emit(record)
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_line() -> None:
    """One object a line: when, how bad, who, what, and the variables."""
    said = {"name": "gpushare.x", "levelname": "WARNING", "msg": "watch interrupted", "kind": "Node"}

    [line] = lines_of(logging.makeLogRecord({**said, "created": 0.25, "msecs": 250.0}))

    assert list(line.items()) == [
        ("time", "1970-01-01T00:00:00.250Z"),
        ("level", "WARNING"),
        ("name", "gpushare.x"),
        ("message", "watch interrupted"),
        ("kind", "Node"),
    ]


def test_time_is_a_time() -> None:
    """What stands as time can be read by a standard library."""
    record = logging.makeLogRecord({"msg": "now"})

    [line] = lines_of(record)

    assert datetime.fromtimestamp(record.created, UTC).replace(microsecond=0) == datetime.fromisoformat(
        str(line["time"])
    ).replace(microsecond=0)


def test_a_failure_stays_one_line() -> None:
    """A traceback is a field, or every one of its lines would be a line of the log."""
    error = ValueError("no\nway")

    [line] = lines_of(logging.makeLogRecord({"msg": "unexpected failure", "exc_info": (ValueError, error, None)}))

    assert "ValueError: no\nway" in str(line["exc_info"])
