"""Quantities as text and as numbers."""

from __future__ import annotations

from fractions import Fraction

import hypothesis.strategies as st
import pytest
from hypothesis import given

from gpushare.sandbox.apiserver.objects import quantities

SUFFIXES = ("", "n", "u", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti", "e3", "E-2")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("536870912Ki", "512Gi", id="memory of a node"),
        pytest.param("0.5", "500m", id="half"),
        pytest.param("1024Mi", "1Gi", id="binary carries over"),
        pytest.param("1000", "1k", id="decimal carries over"),
        pytest.param("1500", "1500", id="as large a suffix as is exact"),
        pytest.param("1.5Gi", "1536Mi", id="no fraction"),
        pytest.param("0.5Ki", "512", id="binary below 1024"),
        pytest.param("12e6", "12e6", id="exponents stay exponents"),
        pytest.param("100000m", "100", id="thousandths"),
        pytest.param("+5", "5", id="plus"),
        pytest.param("-0.5", "-500m", id="negative"),
        pytest.param(".5", "500m", id="no digit before the point"),
        pytest.param("0Gi", "0", id="zero has no suffix"),
        pytest.param("1000E", "1e21", id="larger than any suffix"),
        pytest.param("8Ei", "9223372036854775807", id="binary is capped"),
        pytest.param(1, "1", id="a JSON number"),
        pytest.param(0.25, "250m", id="a JSON fraction"),
    ],
)
def test_canonical(text: quantities.Text, expected: str) -> None:
    """What clients write is stored in its short form."""
    assert expected == quantities.canonical(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("0.0001", "1m", id="a little is never nothing"),
        pytest.param("1.2345", "1235m", id="upwards"),
        pytest.param("64", "64", id="whole"),
    ],
)
def test_canonical_resource(text: str, expected: str) -> None:
    """Amounts of resources have thousandths at most."""
    assert expected == quantities.canonical_resource(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("x", quantities.WRONG_FORMAT, id="no number"),
        pytest.param("", quantities.WRONG_FORMAT, id="empty"),
        pytest.param("5x", quantities.WRONG_FORMAT, id="unknown letter"),
        pytest.param("1 Gi", quantities.WRONG_FORMAT, id="blank"),
        pytest.param("1e", quantities.WRONG_SUFFIX, id="exponent without digits"),
        pytest.param("1KiB", quantities.WRONG_FORMAT, id="bytes"),
        pytest.param("1mi", quantities.WRONG_SUFFIX, id="known letters, unknown suffix"),
        pytest.param(".", quantities.WRONG_NUMBER, id="only a point"),
    ],
)
def test_parse_refuses(text: str, message: str) -> None:
    """What is no quantity is refused in the server's words."""
    with pytest.raises(quantities.QuantityError) as caught:
        quantities.parse(text)
    assert message == str(caught.value)


def test_arithmetic() -> None:
    """Sums are exact, whatever the parts were written in."""
    assert quantities.parse("1Gi") + quantities.parse("512Mi") == quantities.parse("1.5Gi")
    assert quantities.parse("100m") * 10 == 1
    assert quantities.parse_int("1500m") == 2
    assert quantities.parse("1n") == Fraction(1, 10**9)


@given(st.integers(-(10**9), 10**9), st.integers(0, 999), st.sampled_from(SUFFIXES))
def test_short_form_is_the_same_number(whole: int, part: int, suffix: str) -> None:
    """The short form is the same number, and is its own short form."""
    text = f"{whole}.{part:03}{suffix}"
    short = quantities.canonical(text)

    assert quantities.parse(short) == quantities.parse(text)
    assert short == quantities.canonical(short)
