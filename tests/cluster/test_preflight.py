"""What is said where a machine does not permit what a cluster does: found out before anything is built or started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


@pytest.mark.usefixtures("able_machine")
@pytest.mark.parametrize(
    ("capability", "reason"),
    [
        pytest.param("sys_admin", "unshare failed", id="namespaces"),
        pytest.param("net_admin", "RTNETLINK answers", id="network"),
        pytest.param("mknod", "cannot create special file", id="devices"),
    ],
)
def test_permissions(capability: str, reason: str) -> None:
    """Root in a container is not root enough, and the step that fails is named."""
    restricted = ["setpriv", f"--bounding-set=-{capability}", sys.executable, "-m", "support.real_cluster.preflight"]
    environ = {**os.environ, "ALLOW_SKIP": "0"}

    done = subprocess.run(restricted, cwd=TESTS, env=environ, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "it lacks a permission that clusters need" in done.stderr
    assert reason in done.stderr
