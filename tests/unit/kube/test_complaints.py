"""Troubles that last."""

from __future__ import annotations

from gpushare.kube.complaints import AGAIN_SECONDS, Complaints


def test_what_lasts_is_told_now_and_then() -> None:
    """At once, and again after some minutes; another trouble in between changes nothing."""
    now = 100.0
    complaints = Complaints(lambda: now)
    told = []
    for second in range(int(3 * AGAIN_SECONDS)):
        now = 100.0 + second
        told += [(second, word) for word in ("away", "forbidden" if second % 2 else "away") if complaints.is_news(word)]

    assert [second for second, word in told if word == "away"] == [0, AGAIN_SECONDS, 2 * AGAIN_SECONDS]
    assert [second for second, word in told if word == "forbidden"] == [1, AGAIN_SECONDS + 1, 2 * AGAIN_SECONDS + 1]


def test_what_was_over_is_news() -> None:
    """Once all is well, the same is told again at once."""
    complaints = Complaints(lambda: 100.0)
    assert complaints.is_news("away")

    complaints.end()

    assert complaints.is_news("away")
