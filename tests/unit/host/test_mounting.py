"""Shared memory that is mounted, in a mount namespace of the test's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpushare.host.files import HostFiles
from gpushare.host.mounting import half_of_memory

MOUNT = """
import sys
from pathlib import Path
from gpushare.host.mounting import mount_tmpfs

folder = Path(sys.argv[1])
mount_tmpfs(folder, 128)
(folder / "left").touch()
mount_tmpfs(folder, 256)
print([line.split()[2:4] for line in Path("/proc/mounts").read_text().splitlines() if line.split()[1] == str(folder)])
print(sorted(path.name for path in folder.iterdir()))
"""


def in_a_namespace(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["unshare", "--mount", *words], capture_output=True, text=True, check=False)


@pytest.mark.skipif(in_a_namespace("true").returncode != 0, reason="needs the right to mount")
def test_mount_tmpfs(tmp_path: Path) -> None:
    """Mounted once however often it is asked for, empty each time, and nobody can run anything from it."""
    folder = tmp_path / "mps/shm"

    done = in_a_namespace(sys.executable, "-c", MOUNT, str(folder))

    assert done.stderr == ""
    mounts, names = done.stdout.splitlines()
    assert mounts.startswith("[['tmpfs', 'rw,nosuid,nodev,noexec,relatime,size=256k")
    assert mounts.count("tmpfs") == 1
    assert names == "[]"


def test_half_of_memory(tmp_path: Path) -> None:
    """As the kernel tells it; where it does not, what NVIDIA's daemon takes."""
    assert half_of_memory(HostFiles(tmp_path)) == 65536

    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemFree:  1 kB\nMemTotal:       24603648 kB\n")
    assert half_of_memory(HostFiles(tmp_path)) == 12301824
