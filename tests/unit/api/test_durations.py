"""Durations as Go programs read them."""

from __future__ import annotations

import math

import pytest

from gpushare.api.durations import read_duration


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        pytest.param("60s", 60.0, id="seconds"),
        pytest.param("1h5m", 3900.0, id="two units"),
        pytest.param("1.5s", 1.5, id="fraction"),
        pytest.param("250ms", 0.25, id="milliseconds"),
        pytest.param("+2us", 2e-6, id="sign"),
        pytest.param("0", 0.0, id="zero needs no unit"),
        pytest.param("infinite", math.inf, id="infinite"),
        pytest.param(5, 5e-9, id="a number counts nanoseconds"),
    ],
)
def test_read(value: object, seconds: float) -> None:
    """The value in seconds."""
    assert read_duration(value) == pytest.approx(seconds)


@pytest.mark.parametrize("value", ["60", "1day", "", "s", "-5s", -5, True, 1.5, None, [], 10**400])
def test_refused(value: object) -> None:
    """No unit, an unknown one, or less than nothing."""
    with pytest.raises(ValueError, match="duration"):
        read_duration(value)
