"""Files below a root."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpushare.host.devices import read_control_devices, read_driver_load, read_imex_channels
from gpushare.host.files import HostFiles, write_atomically


def test_read(tmp_path: Path) -> None:
    """Paths of the host are below the root; what cannot be read is None or nothing."""
    files = HostFiles(tmp_path)
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/version").write_bytes(b"1\xff2")

    assert files.read_text("/proc/version") == "1�2"
    assert files.read_bytes("/proc/version") == b"1\xff2"
    assert files.read_text("/proc/none") is None
    assert files.read_text("/proc") is None
    assert files.names("/proc") == ("version",)
    assert files.names("/none") == ()
    assert files.exists("/proc/version")


def test_relative_paths_are_the_callers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on any command line."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").touch()

    assert HostFiles(Path("/nowhere")).exists("here")


def test_write_atomically(tmp_path: Path) -> None:
    """Makes the directory, replaces the content, leaves nothing else behind."""
    path = tmp_path / "a/b.json"
    write_atomically(path, "one")
    write_atomically(path, "two")

    assert path.read_text() == "two"
    assert [entry.name for entry in path.parent.iterdir()] == ["b.json"]


def test_failed_write_leaves_what_was_there(tmp_path: Path) -> None:
    """A directory in the place of the file."""
    path = tmp_path / "b.json"
    (path / "in the way").mkdir(parents=True)

    with pytest.raises(OSError, match=r"b\.json"):
        write_atomically(path, "text")
    assert [entry.name for entry in tmp_path.iterdir()] == ["b.json"]


@pytest.mark.parametrize("folder", [pytest.param("", id="root"), pytest.param("driver-root", id="driver root")])
def test_control_devices(tmp_path: Path, folder: str) -> None:
    """Those that exist, in NVIDIA's order, below the driver root where that has any."""
    dev = tmp_path / folder / "dev"
    dev.mkdir(parents=True)
    for name in ("nvidia-uvm", "nvidiactl", "nvidia0"):
        (dev / name).touch()

    assert read_control_devices(HostFiles(tmp_path), "/driver-root") == ("/dev/nvidiactl", "/dev/nvidia-uvm")


def test_imex_channels(tmp_path: Path) -> None:
    """Those that have a device node."""
    folder = tmp_path / "dev/nvidia-caps-imex-channels"
    folder.mkdir(parents=True)
    (folder / "channel0").touch()

    assert read_imex_channels(HostFiles(tmp_path), "/driver-root", (0, 1)) == (0,)


def test_driver_load(tmp_path: Path) -> None:
    """Another text for another start of the machine, and for another loading of the module."""
    files = HostFiles(tmp_path)
    assert read_driver_load(files) == ""
    (tmp_path / "proc/sys/kernel/random").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/random/boot_id").write_text("first\n")
    assert read_driver_load(files) == "first"
    (tmp_path / "sys/module/nvidia").mkdir(parents=True)
    loaded = read_driver_load(files)
    (tmp_path / "sys/module/nvidia").rename(tmp_path / "sys/module/old")
    (tmp_path / "sys/module/nvidia").mkdir()

    assert loaded.startswith("first ")
    assert read_driver_load(files) not in {loaded, "first"}
