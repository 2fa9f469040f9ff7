"""SELinux labels of files, where the machine has SELinux. Used for directories that containers of other pods open."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from gpushare.host.files import HostFiles

_ATTRIBUTE: Final = "security.selinux"
_UNLABELLED: Final = "system_u:object_r:unlabeled_t:s0"


def is_enabled(files: HostFiles) -> bool:
    """Whether the kernel's SELinux file system is there."""
    return files.exists("/sys/fs/selinux/enforce")


def set_type(path: Path, type_: str) -> None:
    """Gives a file or directory this type; user, role and level stay.

    Raises:
        OSError: the label cannot be written.
    """
    parts = _read(path).split(":", 3)
    parts[2] = type_
    os.setxattr(path, _ATTRIBUTE, ":".join(parts).encode() + b"\0")


def _read(path: Path) -> str:
    try:
        return os.getxattr(path, _ATTRIBUTE).rstrip(b"\0").decode()
    except OSError:
        return _UNLABELLED
