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


def build_blocks(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells, of which the last one ends its line as it is: an empty one leaves the one before it its spaces.

    Same alignment as Go's `text/tabwriter` with two spaces: a column is as wide as its widest cell in lines that follow each
    other and have that column, so each block has widths of its own.
    """
    widths: list[list[int]] = [[0] * (len(line) - 1) for line in lines]
    for column in range(max((len(each) for each in widths), default=0)):
        start = 0
        while start < len(lines):
            end = start
            while end < len(lines) and column < len(widths[end]):
                end += 1
            widest = max((len(line[column]) for line in lines[start:end]), default=0)
            for each in widths[start:end]:
                each[column] = widest + 2
            start = max(end, start + 1)
    return "\n".join(
        "".join([*(cell.ljust(width) for cell, width in zip(line, width_of, strict=False)), line[-1]])
        for line, width_of in zip(lines, widths, strict=True)
    )
