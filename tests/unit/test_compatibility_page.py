"""The page that says where we differ from NVIDIA's programs: what it names as proof is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "compatibility.md"
REFERENCES = sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE.read_text(encoding="utf-8"))))

_REPORTS = (
    "1645 1540 1827 1822 1144 615 990 1433 1022 1548 1655 353 1121 628 404 1786 732 491 386 929 1208 1695 1762 634 712 762 679 "
    "1132 982 1085 720 569 764 594 1299 647 685 1118 1929 2052 189 234 111 415 1014 1211 1065 1640 1641 2037 669 2038 2039 231 "
    "1223 1397 774 460 448 1080 170 221 1228 240 796 731 736 27 514 4250 125579 1690"
)
"""Threads in which users of NVIDIA's plugin tell of failures, by number."""


@pytest.mark.parametrize("number", _REPORTS.split())
def test_every_report_has_its_row(number: str) -> None:
    """What hurt people elsewhere is answered by a test or a reason."""
    _, _, reports = PAGE.read_text(encoding="utf-8").partition("## Reports of users of NVIDIA's programs")
    answers = [
        line.split("|")[3] for line in reports.splitlines() if line.startswith("| ") and number in line.split("|")[1]
    ]

    assert answers
    assert all(len(answer) > 20 for answer in answers)


@pytest.mark.parametrize(("path", "test"), [pytest.param(*each, id="::".join(each)) for each in REFERENCES])
def test_named_tests_are_there(path: str, test: str) -> None:
    """A test that was renamed takes its row with it."""
    assert re.search(rf"^(async )?def {test}\(", (TESTS / path).read_text(encoding="utf-8"), re.MULTILINE)


def test_every_deviation_has_a_test() -> None:
    """A deviation that nobody holds may be none any more."""
    deviations, _, _ = PAGE.read_text(encoding="utf-8").partition("## Reports")
    rows = [line for line in deviations.splitlines() if line.startswith("| ") and not line.startswith("| NVIDIA's")]

    assert rows
    assert [row for row in rows if "::test_" not in row] == []
