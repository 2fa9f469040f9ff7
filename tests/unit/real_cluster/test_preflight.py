"""What is said on machines that cannot run a real Kubernetes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.real_cluster import programs

TESTS = Path(__file__).parents[2]
AS_NOBODY = """
import os, sys
from support.real_cluster import preflight
os.geteuid = lambda: 65534
sys.exit(preflight.main())
"""
ON_THE_WAY = ("bash", "mkdir", "flock", "mktemp", "rm")
"""What the script needs before it builds."""
PROGRAMS = (
    "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "etcd", "containerd",
    "containerd-shim-runc-v2", "ctr",
)  # fmt: skip
NO_NETWORK = """\
#!/bin/sh
echo 'go: k8s.io/kubernetes: dial tcp: i/o timeout' >&2
exit 1
"""


def ask(*args: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Asks as `make test-cluster` does, in a process of its own, since the answer is kept."""
    kept = {name: value for name, value in os.environ.items() if name != "ALLOW_SKIP"}
    return subprocess.run(
        [sys.executable, *args], env={**kept, "PYTHONPATH": str(TESTS), **environ}, cwd=TESTS.parent, capture_output=True,
        text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("environ", "code", "advice"),
    [
        pytest.param({}, 1, "(ALLOW_SKIP=1 passes over these tests)", id="fails"),
        pytest.param({"ALLOW_SKIP": "1"}, 0, "(passed over, since ALLOW_SKIP=1)", id="skips"),
    ],
)
def test_no_root(environ: dict[str, str], code: int, advice: str) -> None:
    """Nothing is tried, and the reason stands there whether it counts or not."""
    done = ask("-c", AS_NOBODY, **environ)

    assert done.returncode == code, done.stderr
    assert "this machine cannot run a cluster; it lacks root" in done.stderr
    assert "run it as root" in done.stderr
    assert advice in done.stderr


def test_no_packages(tmp_path: Path) -> None:
    """All that is missing is named at once, with the command that gets it."""
    done = ask("-m", "support.real_cluster.preflight", PATH=str(tmp_path), CC="")

    assert done.returncode == 1
    assert "apt-get install conntrack iproute2 iptables mount procps runc util-linux" in done.stderr
    assert "apt-get install gcc libc6-dev" in done.stderr


def test_no_static_library(tmp_path: Path) -> None:
    """A compiler that makes no programs without files of their own is none."""
    add_program(tmp_path / "cc", "#!/bin/sh\nexit 1\n")

    done = ask("-m", "support.real_cluster.preflight", CC=str(tmp_path / "cc"))

    assert done.returncode == 1
    assert "a C compiler that links statically: apt-get install gcc libc6-dev" in done.stderr


@pytest.mark.parametrize(
    ("go", "reason"),
    [
        pytest.param("", "there is no Go: install Go 1.26 or later", id="no Go"),
        pytest.param(NO_NETWORK, "dial tcp: i/o timeout", id="no network"),
    ],
)
def test_cannot_build(bare: Path, go: str, reason: str) -> None:
    """Without Go, or without its modules, the reason is passed on, and nothing half-built stays."""
    if go:
        add_program(bare / "bin" / "go", go)

    with pytest.raises(programs.BuildError, match=reason):
        programs.build.__wrapped__()

    assert [each.name for each in bare.glob("cache/*/*")] == ["building.lock"]


def test_nothing_to_build(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a folder of all programs is named, nobody asks for Go."""
    assets = bare / "assets"
    assets.mkdir()
    for name in PROGRAMS:
        add_program(assets / name, "#!/bin/sh\n")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))

    assert programs.build.__wrapped__().folders == (assets,)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose `bin` is the PATH, without Go, and whose `cache` is that of the user."""
    path = tmp_path / "bin"
    path.mkdir()
    for name in ON_THE_WAY:
        program = shutil.which(name)
        assert program, name
        (path / name).symlink_to(program)
    for name, value in {"PATH": path, "GOROOT": tmp_path, "XDG_CACHE_HOME": tmp_path / "cache"}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return tmp_path


def add_program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
