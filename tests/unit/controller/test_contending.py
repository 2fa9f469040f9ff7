"""Who fights, and for how long it is left to them."""

from __future__ import annotations

import pytest

from gpushare.controller.contending import LEFT_SECONDS, TIMES, WINDOW_SECONDS, Contention


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("pause", "expected"),
    [
        pytest.param(1.0, {"label"}, id="every time at once"),
        pytest.param(WINDOW_SECONDS / TIMES, {"label"}, id="every time, slowly"),
        pytest.param(WINDOW_SECONDS, set(), id="now and then, as people do"),
    ],
)
def test_claims(pause: float, expected: set[str]) -> None:
    """Only what is taken away again and again within a while is left to others."""
    clock = Clock()
    contention = Contention[str](clock)
    for _ in range(TIMES):
        assert contention.left() == set()
        contention.claim("label")
        clock.now += pause
    contention.claim("another")

    assert contention.left() == expected


def test_forgotten() -> None:
    """What was not wanted in between is not counted together."""
    contention = Contention[str](Clock())
    for _ in range(TIMES):
        contention.claim("label")
        contention.forget("label")

    assert contention.left() == set()


def test_tried_again() -> None:
    """After an hour the other may be gone."""
    clock = Clock()
    contention = Contention[str](clock)
    for _ in range(TIMES):
        contention.claim("label")
    clock.now += LEFT_SECONDS

    assert contention.left() == set()
    contention.claim("label")
    assert contention.left() == set()
