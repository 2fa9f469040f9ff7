"""The control groups below which the pods of a cluster are, in all hierarchies of the machine: of version 1 or of version 2."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

_ROOT: Final = Path("/sys/fs/cgroup")
_UNIFIED: Final = _ROOT / "unified"
"""Where runc makes cgroups besides, on machines that have both versions."""


def parents() -> list[Path]:
    """The roots of all hierarchies in which containers need a place; none where one may not write."""
    if (_ROOT / "cgroup.subtree_control").exists():
        return [_ROOT] if os.access(_ROOT / "cgroup.subtree_control", os.W_OK) else []
    hierarchies = [path for path in sorted(_ROOT.iterdir()) if (path / "cgroup.procs").exists() and path != _UNIFIED]
    return [path for path in hierarchies if not path.is_symlink() and os.access(path, os.W_OK)]


def make(name: str) -> None:
    """Makes a cgroup of that name in each of them, if it is not there. Raises OSError where that is not permitted."""
    for parent in parents():
        _make(parent, parent / name)


def remove(name: str) -> None:
    """Takes away what `make` and others have made there, once nothing runs in it."""
    for parent in (*parents(), _UNIFIED):
        # The deepest first: a cgroup is removed like an empty folder.
        for folder in sorted(parent.glob(f"{name}/**/"), reverse=True):
            with contextlib.suppress(FileNotFoundError):
                folder.rmdir()


def _make(parent: Path, folder: Path) -> None:
    control = parent / "cgroup.subtree_control"
    if control.exists():
        for controller in (parent / "cgroup.controllers").read_text().split():
            control.write_text(f"+{controller}")
    folder.mkdir(exist_ok=True)
    # In version 1, a cgroup may use no processor and no memory until it is told which.
    for name in ("cpuset.cpus", "cpuset.mems"):
        if not control.exists() and (parent / name).exists():
            (folder / name).write_text((parent / name).read_text())
