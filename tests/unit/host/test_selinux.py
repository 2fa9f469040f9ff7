"""SELinux labels, which can be written on most file systems whether or not the kernel heeds them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpushare.host import selinux
from gpushare.host.files import HostFiles

ATTRIBUTE = "security.selinux"


def test_set_type(tmp_path: Path) -> None:
    """Only the type changes; a file without a label gets a whole one."""
    try:
        selinux.set_type(tmp_path, "container_file_t")
    except OSError as error:
        pytest.skip(f"labels cannot be written here: {error.strerror}")
    assert os.getxattr(tmp_path, ATTRIBUTE) == b"system_u:object_r:container_file_t:s0\0"

    os.setxattr(tmp_path, ATTRIBUTE, b"u:r:var_run_t:s0:c1,c2\0")
    selinux.set_type(tmp_path, "container_file_t")
    assert os.getxattr(tmp_path, ATTRIBUTE) == b"u:r:container_file_t:s0:c1,c2\0"


def test_is_enabled(tmp_path: Path) -> None:
    """Where the kernel shows it."""
    assert not selinux.is_enabled(HostFiles(tmp_path))

    (tmp_path / "sys/fs/selinux").mkdir(parents=True)
    (tmp_path / "sys/fs/selinux/enforce").touch()
    assert selinux.is_enabled(HostFiles(tmp_path))
