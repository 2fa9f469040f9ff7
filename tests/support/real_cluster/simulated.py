"""Simulated nodes in a real cluster: `gpushare sandbox --kubeconfig` in its network, where the API server reaches them."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from support import commands
from support.real_cluster.cluster import RealCluster
from support.real_cluster.given import GivenCluster

_END_SECONDS: Final = 60.0


@contextlib.contextmanager
def attached(cluster: RealCluster | GivenCluster, *options: str) -> Iterator[None]:
    """Attaches nodes, as `options` of the command say. They are gone afterwards."""
    log = cluster.logs / "sandbox.log"
    attach = ("sandbox", "--verbose", "--kubeconfig", cluster.kubeconfig_in_network())
    command = cluster.command_in_network(*commands.GPUSHARE, *attach, *options)
    with log.open("a") as file:
        sandbox = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True)
    try:
        yield
        assert sandbox.poll() is None, f"the sandbox ended: {_end_of(log)}"
    finally:
        sandbox.terminate()
        code = sandbox.wait(_END_SECONDS)
    assert code == 0, _end_of(log)


def _end_of(log: Path) -> str:
    return log.read_text(errors="replace")[-2000:]
