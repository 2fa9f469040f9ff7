"""The names under which libraries are loaded."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from gpushare.host.elf import read_soname
from support.driver_roots import build_library
from support.nvml_library import LIBRARY
from support.nvml_library import build_library as compile_library

GOOD = build_library("libx.so.1")


def test_compiled_library() -> None:
    """One that a compiler made."""
    assert read_soname(compile_library()) == LIBRARY


@pytest.mark.parametrize(
    ("content", "soname"),
    [
        pytest.param(GOOD, "libx.so.1", id="small"),
        pytest.param(build_library("libx.so.1", name_at=9), "libx.so.1", id="name further back"),
        pytest.param(b"", "", id="empty"),
        pytest.param(b"#!/bin/sh\n", "", id="no library"),
        pytest.param(b"\x7fELF\x01\x01" + GOOD[6:], "", id="32 bits"),
        pytest.param(GOOD.replace((14).to_bytes(8, "little") + (1).to_bytes(8, "little"), bytes(16)), "", id="no name"),
        pytest.param(build_library("x" * 5000), "", id="endless name"),
        pytest.param(GOOD[:-1], "", id="cut in the name"),
        pytest.param(GOOD.replace(b"libx", b"\xff\xff\xff\xff"), "", id="no UTF-8"),
    ],
)
def test_read(tmp_path: Path, content: bytes, soname: str) -> None:
    """The name, or nothing."""
    path = tmp_path / "library"
    path.write_bytes(content)

    assert read_soname(path) == soname


def test_no_file(tmp_path: Path) -> None:
    """Nothing to read is no failure."""
    assert read_soname(tmp_path / "none") == ""
    assert read_soname(tmp_path) == ""


def test_damage(tmp_path: Path) -> None:
    """However a file is damaged, there is an answer."""
    path = tmp_path / "library"
    dice = random.Random(4)
    for _ in range(500):
        content = bytearray(GOOD[: dice.randrange(len(GOOD)) + 1])
        for _ in range(3):
            content[dice.randrange(len(content))] = dice.randrange(256)
        path.write_bytes(content)

        assert isinstance(read_soname(path), str)
