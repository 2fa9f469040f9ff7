"""A value in a file."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpushare.host.remembering import ValueFile

LOG = logging.getLogger("test")


@dataclass(frozen=True)
class Thing:
    names: tuple[str, ...] = ()


def file_at(path: Path) -> ValueFile[Thing]:
    return ValueFile(path, Thing, LOG)


def test_write_and_read(tmp_path: Path) -> None:
    """What one process writes, the next one reads."""
    assert file_at(tmp_path / "a/b.json").read() is None

    file_at(tmp_path / "a/b.json").write(Thing(("x", "y")))

    assert file_at(tmp_path / "a/b.json").read() == Thing(("x", "y"))


@pytest.mark.parametrize("text", ["", "[]", "null", "{", '{"names": 1}', '{"names": {}}', "\xff"])
def test_damage(tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture) -> None:
    """Counts as nothing, and is said."""
    (tmp_path / "b.json").write_text(text, encoding="latin-1")

    assert file_at(tmp_path / "b.json").read() is None
    assert caplog.messages == ["file unusable: starting afresh"]


def test_cannot_be_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A warning, and life goes on."""
    (tmp_path / "a").touch()

    file_at(tmp_path / "a/b.json").write(Thing())

    assert caplog.messages == ["file cannot be written"]
