"""Texts that stay short."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from gpushare.plan import wording


def test_listed() -> None:
    """In order, the first few by name."""
    assert wording.listed(["b", "a"]) == "a, b"
    assert wording.listed({"d", "c", "b", "a"}) == "a, b, c and 1 more"


def test_counted() -> None:
    """One is one."""
    assert (wording.counted(1, "node"), wording.counted(2, "node")) == ("1 node", "2 nodes")


def test_joined() -> None:
    """Each sentence once."""
    assert wording.joined(["a", "b", "a"]) == "a; b"
    assert wording.joined([]) == ""
    assert wording.joined(["a" * 40, "b"], 30) == "aaaaaaaaaaaa...; and 1 more"


@given(st.lists(st.text(min_size=1, max_size=400), max_size=20), st.integers(60, 1024))
def test_joined_is_bounded(sentences: list[str], limit: int) -> None:
    """Whatever it is made of, a message fits, and says when something is missing."""
    text = wording.joined(sentences, limit)

    assert len(text) <= limit
    assert text == "; ".join(dict.fromkeys(sentences)) or "more" in text or text.endswith("...")
