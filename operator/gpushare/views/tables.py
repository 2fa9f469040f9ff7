"""Tables in columns of text, as kubectl prints them. Used by the other views."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def build_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns as wide as their widest cell, two spaces apart; no line ends in spaces."""
    lines = [header, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
