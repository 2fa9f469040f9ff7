"""The programs of a cluster, which are built where they are missing."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_SCRIPT: Final = Path(__file__).parents[3] / "scripts" / "build_kubernetes.sh"


@dataclass(frozen=True, slots=True)
class Programs:
    """Where the programs are."""

    folders: tuple[Path, ...]
    """The first that has a program counts."""

    def find(self, name: str) -> Path:
        """One of them. Raises AssertionError where there is none."""
        found = next((path for folder in self.folders if (path := folder / name).exists()), None)
        assert found, f"no {name} in {', '.join(map(str, self.folders))}"
        return found

    @property
    def path(self) -> str:
        """A PATH with all of them, and those of the machine."""
        return os.pathsep.join([*map(str, self.folders), "/usr/sbin:/usr/bin:/sbin:/bin"])


class BuildError(Exception):
    """The programs are not there and cannot be built; in the words of what was tried last."""


@functools.cache
def build() -> Programs:
    """Builds what is not there yet, which takes a quarter of an hour the first time. Raises BuildError."""
    said = ""
    with subprocess.Popen([_SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as script:
        assert script.stdout is not None
        assert script.stderr is not None
        for line in script.stderr:
            sys.stderr.write(line)
            said = line.strip() or said
        folders = script.stdout.read().split()
    if script.returncode:
        raise BuildError(said)
    return Programs(tuple(map(Path, folders)))
