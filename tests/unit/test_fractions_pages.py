"""The pages for people who come from other systems: complete, and true where a program can tell."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpushare.api.converting import UNITS
from gpushare.scheduler import settings

DOCS = Path(__file__).parents[2] / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("number", range(1, 31))
def test_every_report_has_an_answer(number: int) -> None:
    """Each of the thirty clusters of reports about HAMi."""
    rows = [line.split(" | ") for line in page("from-hami.md").splitlines() if line.startswith(f"| {number}. ")]

    assert [len(row) for row in rows] == [2]


@pytest.mark.parametrize("number", range(1, 17))
def test_every_race_has_an_answer(number: int) -> None:
    """Each of the races of the open gpushare project."""
    assert f"| R{number} | " in page("fractions.md")


def test_settings_exist() -> None:
    """What is named as a setting of the scheduler is one."""
    named = set(re.findall(r"`fractions\.settings\.(\w+)`", page("from-hami.md")))

    assert named
    assert named <= set(settings.KEYS)


def test_units_exist() -> None:
    """Units of memory that are named can be written."""
    (row,) = (line for line in page("from-gpushare.md").splitlines() if "memoryUnit" in line)

    assert set(re.findall(r"`(\d*[GM]iB)`", row)) <= set(UNITS)
