"""Waiting longer and longer."""

from hypothesis import given
from hypothesis import strategies as st

from gpushare.kube.backoff import Backoff


@given(st.integers(1, 40))
def test_bounds(tries: int) -> None:
    """Delays grow, with jitter, and never pass the cap; success starts over."""
    backoff = Backoff(first=0.1, most=5)

    for n in range(tries):
        full = min(0.1 * 2**n, 5)
        assert full / 2 <= backoff.next() <= full

    backoff.reset()
    assert backoff.next() <= 0.1
