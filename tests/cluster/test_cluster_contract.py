"""What every `Cluster` does, on both clients, against a real API server: the tests of `integration` unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from integration.test_cluster_contract import *  # noqa: F403 - every test of it, and its fixtures
from integration.test_cluster_contract import NAMESPACE
from support.real_cluster import access
from support.real_cluster.cluster import RealCluster


class RealServer:
    """A real API server, as those tests use the embedded one."""

    def __init__(self, cluster: RealCluster) -> None:
        self._cluster = cluster
        self.ca_pem = cluster.access.authority.pem
        self.url = f"https://127.0.0.1:{cluster.port}"

    def kubeconfig(self, user: str) -> dict[str, Any]:
        return self._cluster.access.kubeconfig(user, self._cluster.port)

    def token(self) -> str:
        token: str = self.kubeconfig(access.ADMIN)["users"][0]["user"]["token"]
        return token

    async def pause(self) -> None:
        self._cluster.stop_api_server()

    async def resume(self, **_: float) -> None:
        """How long it is busy then is its own affair."""
        self._cluster.start_api_server()


@pytest.fixture
def server(control_plane: RealCluster) -> Iterator[RealServer]:
    yield RealServer(control_plane)
    # One request for all objects of a kind, since there are hundreds; not for what controllers would make again, some time.
    for path in (
        f"namespaces/{NAMESPACE}/configmaps?fieldSelector=metadata.name!=kube-root-ca.crt",
        f"namespaces/{NAMESPACE}/serviceaccounts?fieldSelector=metadata.name!=default",
        "nodes",
    ):
        control_plane.kubectl("delete", "--raw", f"/api/v1/{path}")
