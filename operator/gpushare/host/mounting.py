"""Mounts of the kernel. Used for the shared memory of MPS, which daemon and clients in different containers must share."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Final

from gpushare.host.files import HostFiles

_MS_NOSUID: Final = 0x2
_MS_NODEV: Final = 0x4
_MS_NOEXEC: Final = 0x8
_MS_RELATIME: Final = 0x200000
_MNT_DETACH: Final = 0x2
_FALLBACK_KIB: Final = 65536
"""What NVIDIA's daemon takes where the machine does not tell its memory."""


def half_of_memory(files: HostFiles) -> int:
    """Half of the machine's memory in KiB: the kernel's own default for a tmpfs."""
    for line in (files.read_text("/proc/meminfo") or "").splitlines():
        name, _, value = line.partition(":")
        if name == "MemTotal":
            return int(value.split()[0]) // 2
    return _FALLBACK_KIB


def mount_tmpfs(path: Path, kib: int) -> None:
    """Mounts an empty tmpfs of at most that size, in place of one that is there already.

    Whoever has the old one open, or mounted in a container, keeps it.

    Raises:
        OSError: the directory cannot be made, or we may not mount.
    """
    path.mkdir(parents=True, exist_ok=True)
    libc = ctypes.CDLL(None, use_errno=True)
    while os.path.ismount(path):
        _check(libc.umount2(os.fsencode(path), _MNT_DETACH), path)
    flags = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC | _MS_RELATIME
    _check(libc.mount(b"shm", os.fsencode(path), b"tmpfs", ctypes.c_ulong(flags), f"size={kib}k".encode()), path)


def _check(result: int, path: Path) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(path))
