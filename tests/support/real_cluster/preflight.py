"""Whether this machine can run a cluster: asked before anything is built, by `make test-cluster`, `make cluster` and the tests.

What programs of a cluster do to a machine is done once, in namespaces of its own, since nothing else tells whether a
container or a kernel lets them.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from support.images import workloads
from support.real_cluster import cgroups, programs
from support.real_cluster.namespaces import Namespaces
from support.real_cluster.programs import BuildError

_CNI: Final = Path("/usr/lib/cni")
_TOOLS: Final = {
    "runc": "runc", "iptables": "iptables", "conntrack": "conntrack", "ip": "iproute2", "sysctl": "procps",
    "unshare": "util-linux", "nsenter": "util-linux", "setpriv": "util-linux", "mount": "mount",
}  # fmt: skip
"""By name, the package of Debian that has each."""
_TRIAL: Final = Path(__file__).with_name("trial.sh")
_TRIAL_SECONDS: Final = 60


def main() -> int:
    """Says what is missing, and how to get it; builds the programs where nothing is."""
    refusal = refuse(has_node=True)
    if refusal:
        sys.stderr.write(f"{refusal}\n")
    return 1 if refusal and not may_skip() else 0


def may_skip() -> bool:
    """Whether a machine that cannot run a cluster is put up with."""
    return os.environ.get("ALLOW_SKIP") == "1"


@functools.cache
def refuse(*, has_node: bool) -> str:
    """Why there can be no cluster here, or none with a node, in words for whoever asked for its tests; empty: there can be."""
    lacks = _find_lacks(has_node=has_node)
    if not lacks:
        return ""
    advice = "passed over, since ALLOW_SKIP=1" if may_skip() else "ALLOW_SKIP=1 passes over these tests"
    return f"this machine cannot run a cluster; it lacks {'; '.join(lacks)} ({advice})"


def _find_lacks(*, has_node: bool) -> list[str]:
    lacks = [] if os.geteuid() == 0 else ["root, who alone may make namespaces and mounts: run it as root"]
    lacking = {package for tool, package in _TOOLS.items() if not shutil.which(tool)}
    if has_node and not all((_CNI / name).exists() for name in ("bridge", "host-local", "loopback")):
        lacking.add("containernetworking-plugins")
    if lacking:
        lacks.append(f"packages: apt-get install {' '.join(sorted(lacking))}")
    if wrong := _compile():
        lacks.append(wrong)
    # Each of these needs what the last ones asked for; and nobody waits for programs that could not run.
    if not lacks and (wrong := _try(has_node=has_node)):
        wrong = wrong.strip().splitlines()[-1]
        lacks.append(f"a permission that clusters need, and that containers have where they are privileged: {wrong}")
    if not lacks and (wrong := _build()):
        lacks.append(
            f"the programs of Kubernetes: {wrong}; let Go reach its module proxy (GOPROXY), "
            "or name a folder of programs with KUBEBUILDER_ASSETS"
        )
    return lacks


def _compile() -> str:
    try:
        with tempfile.TemporaryDirectory() as folder:
            workloads.compile_pause(Path(folder, "pause"))
    except AssertionError as error:
        return str(error)
    except subprocess.CalledProcessError:
        return "a C compiler that links statically: apt-get install gcc libc6-dev"
    return ""


def _build() -> str:
    try:
        programs.build()
    except BuildError as error:
        return str(error)
    return ""


def _try(*, has_node: bool) -> str:
    """What the machine does not let a cluster do; empty: it does."""
    with tempfile.TemporaryDirectory(prefix="gpushare-", dir="/tmp") as folder:
        state = Path(folder)
        pause = state / "pause"
        workloads.compile_pause(pause)
        try:
            namespaces = Namespaces.create(state, pause, state / "namespaces.log")
        except AssertionError as error:
            return str(error)
        try:
            return _try_node(namespaces, state) if has_node else ""
        finally:
            namespaces.end()
            cgroups.remove(state.name)


def _try_node(namespaces: Namespaces, state: Path) -> str:
    if not cgroups.parents():
        return "/sys/fs/cgroup has neither the hierarchies of version 1 nor a writable one of version 2"
    try:
        cgroups.make(state.name)
    except OSError as error:
        return f"a cgroup: {error}"
    # Into a file: what it starts holds it open.
    log = state / "trial.log"
    with log.open("w") as file:
        command = namespaces.enter(_TRIAL, state)
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, timeout=_TRIAL_SECONDS, check=False
        )
    return log.read_text() if done.returncode else ""


if __name__ == "__main__":
    sys.exit(main())
