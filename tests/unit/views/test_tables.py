"""Columns of text."""

from __future__ import annotations

from gpushare.views.documents import build_text
from gpushare.views.tables import build_table


def test_table() -> None:
    """Columns are as wide as their widest cell, and no line ends in spaces."""
    assert build_table(["A", "LONG"], [["longer", "b"], ["", ""]]) == "A       LONG\nlonger  b\n"


def test_no_rows() -> None:
    """A header alone is a table too."""
    assert build_table(["A", "B"], []) == "A  B"


def test_documents() -> None:
    """Keys keep their order in both forms."""
    assert build_text({"b": 1, "a": ["ü"]}, "yaml") == "b: 1\na:\n- ü"
    assert build_text({"b": 1, "a": []}, "json") == '{\n  "b": 1,\n  "a": []\n}'
