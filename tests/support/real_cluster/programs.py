"""The programs of a cluster, and what the machine must have to run them."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_SCRIPT: Final = Path(__file__).parents[3] / "scripts" / "build_kubernetes.sh"
_CNI: Final = Path("/usr/lib/cni")
_TOOLS: Final = {
    "runc": "runc", "iptables": "iptables", "conntrack": "conntrack", "ip": "iproute2", "sysctl": "procps",
    "unshare": "util-linux", "nsenter": "util-linux", "setpriv": "util-linux", "mount": "mount",
}  # fmt: skip
"""By name, the package of Debian that has each."""


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


@functools.cache
def build() -> Programs:
    """Builds what is not there yet, which takes a quarter of an hour the first time. Raises where that fails."""
    return Programs(tuple(map(Path, subprocess.check_output([_SCRIPT], text=True).split())))


def find_lacks(*, has_node: bool) -> list[str]:
    """What the machine lacks for a cluster, or for one with a node; empty: nothing."""
    lacks = []
    if os.geteuid() != 0:
        lacks.append("root, who alone may make namespaces and mounts")
    lacking = {package for tool, package in _TOOLS.items() if not shutil.which(tool)}
    if has_node and not all((_CNI / name).exists() for name in ("bridge", "host-local", "loopback")):
        lacking.add("containernetworking-plugins")
    if lacking:
        lacks.append(f"packages: apt-get install {' '.join(sorted(lacking))}")
    if has_node and not cgroup_parents():
        lacks.append("cgroups: /sys/fs/cgroup has neither the hierarchies of version 1 nor a writable one of version 2")
    try:
        build()
    except subprocess.CalledProcessError:
        lacks.append("the programs of Kubernetes, which cannot be built here: what speaks against it stands above")
    return lacks


def cgroup_parents() -> list[Path]:
    """The roots of all cgroup hierarchies in which containers need a place."""
    root = Path("/sys/fs/cgroup")
    if (root / "cgroup.subtree_control").exists():
        return [root] if os.access(root / "cgroup.subtree_control", os.W_OK) else []
    hierarchies = [
        path for path in sorted(root.iterdir()) if (path / "cgroup.procs").exists() and path.name != "unified"
    ]
    return [path for path in hierarchies if not path.is_symlink() and os.access(path, os.W_OK)]
