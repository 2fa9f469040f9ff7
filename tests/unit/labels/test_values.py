"""Texts of the hardware as label values."""

from __future__ import annotations

import re

import hypothesis.strategies as st
import pytest
from hypothesis import given

from gpushare.labels.values import sanitise, with_suffix

LEGAL = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("Tesla T4", "Tesla-T4", id="T4"),
        pytest.param("NVIDIA A100-SXM4-40GB", "NVIDIA-A100-SXM4-40GB", id="A100"),
        pytest.param("NVIDIA TITAN X (Pascal)", "NVIDIA-TITAN-X-Pascal", id="parentheses"),
        pytest.param("some ( thing )else", "some-thing-else", id="spaces inside"),
        pytest.param("Standard PC (i440FX + PIIX, 1996)", "Standard-PC-i440FX-PIIX-1996", id="a virtual machine"),
        pytest.param("To Be Filled By O.E.M.", "To-Be-Filled-By-O.E.M", id="ends in a dot"),
        pytest.param("(weird) -", "weird", id="ends in dashes"),
        pytest.param("-x", "x", id="begins with a dash"),
        pytest.param("x" * 70, "x" * 63, id="too long"),
        pytest.param("", "", id="empty"),
        pytest.param("Grafikkarte für Spiele", "Grafikkarte-fr-Spiele", id="not ASCII"),
        pytest.param("\ufffd\ufffd", "", id="nothing legal in it"),
    ],
)
def test_sanitise(text: str, expected: str) -> None:
    """What feature discovery makes of it, cut to what the API server takes."""
    assert sanitise(text) == expected


def test_the_suffix_survives() -> None:
    """A long name gives way to what people select by."""
    value = with_suffix("x" * 63, "-MIG-1g.5gb-SHARED")

    assert value.endswith("x-MIG-1g.5gb-SHARED")
    assert len(value) == 63


@given(st.text(), st.sampled_from(("-SHARED", "-MIG-1g.5gb-SHARED")))
def test_always_legal(text: str, suffix: str) -> None:
    """Whatever a driver or firmware says."""
    assert LEGAL.fullmatch(sanitise(text))
    assert len(sanitise(text)) <= 63
    assert LEGAL.fullmatch(with_suffix(sanitise(text), suffix).lstrip("-"))
