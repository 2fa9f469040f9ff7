"""What people type, against a real server: it answers as the one did that was recorded, and that the embedded one is held to."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from cluster import newer
from gpushare.kube.credentials import from_kubeconfig
from gpushare.kube.lean import LeanCluster
from integration.apiserver.test_recorded import (
    RECORDED,
    RECORDED_PORT,
    run_suites,
    test_answer,  # noqa: F401 - the test itself
)
from support.kubectl_suites import Answer
from support.real_cluster import access
from support.real_cluster.cluster import RealCluster
from support.standin_kubelets import StandinKubelets, serving_logs

_GOODBYE_SECONDS = 0.2
"""Connections over TLS take some turns of the loop to close."""
LOG = logging.getLogger("test")


async def run_real(cluster: RealCluster, folder: Path) -> dict[str, Answer]:
    """All answers of a real server, with the same stand-in of kubelets as the embedded one has."""
    admin = LeanCluster(from_kubeconfig(cluster.kubeconfig()))
    async with serving_logs(cluster.access.authority, cluster.listen(int(RECORDED_PORT))) as port:
        kubelets = asyncio.create_task(StandinKubelets(admin, LOG).run())
        try:
            answers = await run_suites(folder, cluster.access.kubeconfig(access.PERSON, cluster.port), port)
        finally:
            kubelets.cancel()
            await asyncio.gather(kubelets, return_exceptions=True)
            await admin.close()
            # It would keep its connections to the kubelets for long.
            cluster.stop_api_server()
    await asyncio.sleep(_GOODBYE_SECONDS)
    return answers


@pytest.fixture(scope="module")
def answers(control_plane: RealCluster, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answer]:
    found = asyncio.run(run_real(control_plane, tmp_path_factory.mktemp("suites")))
    return newer.as_recorded(found, RECORDED)
