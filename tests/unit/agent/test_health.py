"""Which reports count, and what kind of trouble they are."""

from __future__ import annotations

import pytest

from gpushare.agent import health
from gpushare.agent.health import Checks
from gpushare.agent.options import HealthChecks
from gpushare.domain.troubles import Cause
from gpushare.nvml.port import Event, EventKind

GPU = "GPU-0"


@pytest.mark.parametrize(
    ("disabled", "enabled", "counted", "ignored"),
    [
        pytest.param("", "", [79, 48, 0], [13, 31, 43, 45, 68, 109], id="built in"),
        pytest.param(" 79 , x,-1", "", [48], [79, 13], id="more ignored"),
        pytest.param("68,not-an-int,67", "", [79], [67, 68], id="what is no number is skipped"),
        pytest.param("ALL", "", [], [79, 13], id="all off"),
        pytest.param("xids", "", [], [79, 13], id="xids off"),
        pytest.param("all", "79", [79], [48, 13], id="one back on"),
        pytest.param("79", "79", [79], [13], id="on beats off"),
        pytest.param("", "13", [13, 79], [31], id="built in, but one"),
        pytest.param("all", "all", [79, 13], [], id="all on"),
    ],
)
def test_checks(disabled: str, enabled: str, counted: list[int], ignored: list[int]) -> None:
    """NVIDIA's two variables, and what is on stays on when all others are off."""
    checks = Checks.parse(HealthChecks(disabled=disabled, enabled=enabled))

    assert all(checks.counts(Event(uuid=GPU, xid=xid)) for xid in counted)
    assert not any(checks.counts(Event(uuid=GPU, xid=xid)) for xid in ignored)


@pytest.mark.parametrize(
    ("disabled", "enabled", "expected"),
    [
        pytest.param("", "", (False, False), id="nothing said"),
        pytest.param("xids", "", (False, True), id="only reports are off"),
        pytest.param("79", "", (False, False), id="one report is off"),
        pytest.param("all", "", (True, True), id="all off"),
        pytest.param("all", "79", (True, False), id="all off but one report"),
        pytest.param("all", "all", (False, False), id="all on"),
    ],
)
def test_checks_that_are_off(disabled: str, enabled: str, expected: tuple[bool, bool]) -> None:
    """Without checks, a GPU is not even sick when it cannot be read; where no report counts, nobody listens."""
    checks = Checks.parse(HealthChecks(disabled=disabled, enabled=enabled))

    assert (checks.trusts_silence, checks.hears_nothing) == expected


def test_ecc_is_no_xid() -> None:
    """A double-bit error comes with an XID of its own."""
    assert not Checks().counts(Event(uuid=GPU, kind=EventKind.DOUBLE_BIT_ECC))


@pytest.mark.parametrize(
    ("xid", "expected"),
    [pytest.param(31, Cause.APPLICATION, id="a program's"), pytest.param(79, Cause.HARDWARE, id="the GPU's")],
)
def test_cause(xid: int, expected: Cause) -> None:
    """Who made the error decides what ends it."""
    assert health.cause_of(Event(uuid=GPU, xid=xid)) is expected
