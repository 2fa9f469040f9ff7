"""Options and fixtures of all suites."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from support.skipped_time import skipped

# How long an example takes says more about the machine than about us.
settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files instead of comparing")


def pytest_sessionstart(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        session.config.pluginmanager.register(_Failures(reporter))


class _Failures:
    """Names each failure as soon as it is known: a long run may not come to its summary."""

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            reason = report.longreprtext.rstrip().rpartition("\n")[2]
            self._reporter.ensure_newline()
            self._reporter.write_line(f"{report.nodeid}: {report.when} failed: {reason}")


@pytest.fixture
async def skipped_time() -> AsyncIterator[None]:
    """Nobody waits for the clock: see `support.skipped_time`."""
    with skipped(asyncio.get_running_loop()):
        yield


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with `tests/golden/<name>`, or rewrites that file with `--update-golden`."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"no golden file {path.name}: run `make golden-update`"
        assert path.read_text(encoding="utf-8") == text

    return compare
