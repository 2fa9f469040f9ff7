"""HAMi's library on the machine: kept in versions, never written again, missing without harm."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from gpushare.host.files import HostFiles
from gpushare.host.hami_core import ROOT, HamiCore
from gpushare.sharing.responses import RequestRefused

SOURCE = "/usr/local/vgpu/libvgpu.so"


def core(root: Path) -> HamiCore:
    return HamiCore(HostFiles(root), SOURCE)


def supply(root: Path, content: bytes = b"\x7fELF one", *, below: str = "/host") -> None:
    path = HostFiles(root).path(below + SOURCE)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


@pytest.mark.parametrize("below", [pytest.param("/host", id="in our DaemonSet"), pytest.param("", id="on the machine")])
def test_kept(tmp_path: Path, below: str) -> None:
    """A copy under the name of its content, with the file that makes the loader take it."""
    supply(tmp_path, below=below)
    library = core(tmp_path)

    assert library.look() == ""

    paths = library.prepare(["a", "b"])
    assert paths.library == f"{ROOT}/{library.version}/libvgpu.so"
    files = HostFiles(tmp_path)
    assert files.path(paths.library).read_bytes() == b"\x7fELF one"
    assert files.path(paths.preload).read_text() == "/usr/local/vgpu/libvgpu.so\n"
    assert [files.path(path).stat().st_mode & 0o777 for path in (paths.scratch, paths.locks)] == [0o777, 0o777]


def test_a_new_version_leaves_the_old_one_alone(tmp_path: Path) -> None:
    """Programs that have loaded it go on; containers that come get the new one."""
    supply(tmp_path)
    library = core(tmp_path)
    library.look()
    old = HostFiles(tmp_path).path(library.prepare(["a"]).library)
    inode = old.stat().st_ino

    supply(tmp_path, b"\x7fELF two")
    library.look()

    new = HostFiles(tmp_path).path(library.prepare(["a"]).library)
    assert (new != old, new.read_bytes(), old.read_bytes()) == (True, b"\x7fELF two", b"\x7fELF one")
    library.look()
    assert old.stat().st_ino == inode


def test_a_container_finds_its_directory_empty(tmp_path: Path) -> None:
    """What the container before it with these ids has left is not its business."""
    supply(tmp_path)
    library = core(tmp_path)
    library.look()
    scratch = HostFiles(tmp_path).path(library.prepare(["a", "b"]).scratch)
    (scratch / "usage.cache").touch()

    assert HostFiles(tmp_path).path(library.prepare(["b", "a"]).scratch) == scratch
    assert list(scratch.iterdir()) == []
    assert HostFiles(tmp_path).path(library.prepare(["a"]).scratch) != scratch


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(None, f"HAMi's library is not at {SOURCE} of this node", id="missing"),
        pytest.param(b"#!/bin/sh", f"{SOURCE} of this node is no shared library", id="something else"),
    ],
)
def test_missing(tmp_path: Path, content: bytes | None, said: str) -> None:
    """Said, and no container gets a mount of a file that is not there."""
    if content is not None:
        supply(tmp_path, content)
    library = core(tmp_path)

    assert said in library.look()

    with pytest.raises(RequestRefused, match="nothing else isolates"):
        library.prepare(["a"])


def test_disk_that_cannot_be_written(tmp_path: Path) -> None:
    """A reason, not an exception."""
    supply(tmp_path)
    HostFiles(tmp_path).path("/var").touch()

    assert "cannot be kept" in core(tmp_path).look()


def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Said, and nothing half-written stays, or each look would make it fuller."""
    supply(tmp_path)

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)

    assert "No space left on device" in core(tmp_path).look()
    assert [path for path in HostFiles(tmp_path).path(ROOT).rglob("*") if path.is_file()] == []
