"""A root file system that is put together from programs of this machine, each with the libraries that it loads."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

_FOLDERS = ("bin", "dev", "etc", "proc", "root", "run", "sys", "usr/bin", "usr/local/bin", "var/log")
_FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}
_LIBRARY = re.compile(r"(?:=> )?(/\S+) \(0x")
"""A line of ldd that says where a library is."""


def make_root(root: Path) -> None:
    """The folders and files that every program takes for granted."""
    for folder in _FOLDERS:
        (root / folder).mkdir(parents=True)
    (root / "tmp").mkdir(mode=0o1777)
    (root / "tmp").chmod(0o1777)  # whatever the umask is
    for path, text in _FILES.items():
        (root / path).write_text(text)


def add_program(root: Path, program: Path, place: str) -> None:
    """A program of this machine, at another place if need be, and what it loads."""
    target = root / place.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(program, target)
    add_libraries(root, [program])


def add_libraries(root: Path, programs: Iterable[Path]) -> None:
    """The shared libraries that these programs and libraries load, where the loader finds them on this machine."""
    found = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False).stdout
    for library in sorted(set(_LIBRARY.findall(found))):
        target = root / library.lstrip("/")
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(Path(library).resolve(), target)
