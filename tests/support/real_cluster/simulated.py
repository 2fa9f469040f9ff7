"""Simulated nodes in a real cluster: `gpushare sandbox --kubeconfig` in its network, where the API server reaches them."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from typing import Final

import yaml

from support import commands
from support.real_cluster import access
from support.real_cluster.cluster import RealCluster

_END_SECONDS: Final = 60.0


@contextlib.contextmanager
def attached(cluster: RealCluster, *options: str) -> Iterator[None]:
    """Attaches nodes, as `options` of the command say. They are gone afterwards."""
    kubeconfig = cluster.access.file("sandbox.yaml")
    kubeconfig.write_text(yaml.safe_dump(cluster.access.kubeconfig(access.ADMIN, access.API_PORT)))
    command = [*commands.GPUSHARE, "sandbox", "--verbose", "--kubeconfig", kubeconfig, *options]
    with cluster.daemons.logs.joinpath("sandbox.log").open("a") as log:
        sandbox = subprocess.Popen(
            cluster.command_in_network(*command),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield
        assert sandbox.poll() is None, f"the sandbox ended: {cluster.daemons.log_of('sandbox')}"
    finally:
        sandbox.terminate()
        code = sandbox.wait(_END_SECONDS)
    assert code == 0, cluster.daemons.log_of("sandbox")
