"""The page that says where we differ from NVIDIA's programs: what it names as proof is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "compatibility.md"
REFERENCES = sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE.read_text(encoding="utf-8"))))


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
