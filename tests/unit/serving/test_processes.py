"""What every process does around its work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from gpushare.errors import UsageError
from gpushare.serving.processes import WRONG_USAGE, Command

COMMAND = Command(name="thing", usage=lambda: "how to call it\n")
_PROGRAM = """
import sys
from gpushare.serving.processes import Command, Signals

async def work(options: str, signals: Signals) -> int:
    print(options, flush=True)
    await getattr(signals, sys.argv[1]).wait()
    return 7

sys.exit(Command(name="thing", usage=str).run([], lambda: "started", work))
"""


def _never() -> str:
    raise AssertionError("nothing is parsed, and nothing runs")


@pytest.mark.parametrize("word", ["-h", "--help", "-help"])
def test_help(capsys: pytest.CaptureFixture[str], word: str) -> None:
    """Who asks for help gets it, whatever else stands there."""
    assert COMMAND.run(["--bogus", word], _never, _never) == 0  # type: ignore[arg-type]
    assert capsys.readouterr().out == "how to call it\n"


def test_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    """A text that names the command, and exit code 2."""

    def parse() -> str:
        raise UsageError("unknown flag --bogus")

    assert COMMAND.run(["--bogus"], parse, _never) == WRONG_USAGE  # type: ignore[arg-type]
    assert capsys.readouterr().err == "gpushare thing: unknown flag --bogus\n"


@pytest.mark.parametrize(
    ("event", "number"),
    [
        pytest.param("stop", signal.SIGTERM, id="TERM"),
        pytest.param("stop", signal.SIGINT, id="INT"),
        pytest.param("stop", signal.SIGQUIT, id="QUIT"),
        pytest.param("again", signal.SIGHUP, id="HUP"),
    ],
)
def test_signals(event: str, number: signal.Signals) -> None:
    """Each signal reaches the work as an event, and what the work returns is the exit code."""
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, event], stdout=subprocess.PIPE, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"
        process.send_signal(number)

        assert process.wait(30) == 7
