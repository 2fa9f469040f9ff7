"""Logs that grow, and that are replaced."""

from __future__ import annotations

from pathlib import Path

from gpushare.host.tailing import FileTail


def test_grows(tmp_path: Path) -> None:
    """Each line once, whole, in order."""
    path = tmp_path / "log"
    tail = FileTail(path)
    assert tail.read() == ()

    path.write_text("one\n\ntwo\nthr")
    assert tail.read() == ("one", "two")
    assert tail.read() == ()

    with path.open("a") as file:
        file.write("ee\n")
    assert tail.read() == ("three",)


def test_replaced(tmp_path: Path) -> None:
    """A new daemon starts a new log."""
    path = tmp_path / "log"
    path.write_text("one\ntwo\n")
    tail = FileTail(path)
    assert tail.read() == ("one", "two")

    path.write_text("new\n")
    assert tail.read() == ("new",)

    path.unlink()
    assert tail.read() == ()
    path.write_text("another\n")
    assert tail.read() == ("another",)


def test_much_at_once(tmp_path: Path) -> None:
    """Little by little; a line without an end is cut, and what is no text does no harm."""
    path = tmp_path / "log"
    path.write_bytes(b"\xff" * 70_000 + b"\n" + b"x\n" * 40_000)
    tail = FileTail(path)

    lines: list[str] = []
    while found := tail.read():
        lines += found

    assert [len(line) for line in lines[:2]] == [65_536, 70_000 - 65_536]
    assert lines[2:] == ["x"] * 40_000
