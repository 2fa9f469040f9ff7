"""How often a status may be written."""

from __future__ import annotations

import pytest

from gpushare.controller.pacing import Pace


class Clock:
    """Stands still unless it is told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        pytest.param((), 0.0, id="never before"),
        pytest.param((0.0, 0.0), 0.0, id="less than a burst"),
        pytest.param((0.0, 0.0, 0.0), 1.0, id="a burst is used up"),
        pytest.param((0.0, 0.0, 0.0, 1.0), 1.0, id="then one a second"),
        pytest.param((0.0, 0.0, 0.0, 0.4), 1.6, id="what came early is waited for"),
        pytest.param((0.0, 0.0, 0.0, 9.0), 0.0, id="a quiet time gives the burst back"),
    ],
)
def test_wait(times: tuple[float, ...], expected: float) -> None:
    """A few at once, one a second in the long run."""
    clock = Clock()
    pace = Pace(clock, seconds=1.0, burst=3)
    for seconds in times:
        clock.now += seconds
        pace.count("policy")

    assert pace.wait("policy") == pytest.approx(expected)
    assert pace.wait("another") == 0.0
