"""Label selectors as text."""

from __future__ import annotations

import pytest

from gpushare.domain.selectors import Selector


@pytest.mark.parametrize(
    ("text", "labels", "expected"),
    [
        pytest.param("pool=canary", {"pool": "canary"}, True, id="equal"),
        pytest.param("pool==canary", {"pool": "canary"}, True, id="equal, twice said"),
        pytest.param("pool=canary", {"pool": "prod"}, False, id="not equal"),
        pytest.param("pool=canary", {}, False, id="absent"),
        pytest.param("pool=", {"pool": ""}, True, id="empty"),
        pytest.param("tier!=prod", {}, True, id="absent is not equal"),
        pytest.param("tier != prod", {"tier": "prod"}, False, id="unequal, with room"),
        pytest.param("example.com/gpu", {"example.com/gpu": "x"}, True, id="there"),
        pytest.param("!spot", {"spot": "x"}, False, id="must not be there"),
        pytest.param("pool=canary, !spot", {"pool": "canary"}, True, id="both hold"),
        pytest.param("pool=canary,tier!=prod", {"pool": "canary", "tier": "prod"}, False, id="one does not"),
    ],
)
def test_matches(text: str, labels: dict[str, str], expected: bool) -> None:
    """All terms have to hold."""
    assert Selector.parse(text).matches(labels) is expected


@pytest.mark.parametrize("text", ["", "a b", "a in (b)", "=b", "a=b,", "a>1", "a=b=c", "a=-"])
def test_parse_refuses(text: str) -> None:
    """What cannot be read is an error, never a selector of everything."""
    with pytest.raises(ValueError, match="expected labels such as pool=canary"):
        Selector.parse(text)
