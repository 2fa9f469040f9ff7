"""Simulated nodes in a cluster that somebody else runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from gpushare import names
from gpushare.domain import manifests
from gpushare.errors import ConfigurationError
from gpushare.kube import credentials
from gpushare.kube.lean import LeanCluster
from gpushare.sandbox import installing, scheduling, workloads
from gpushare.sandbox.apiserver.server import ApiServer, Settings
from gpushare.sandbox.app import Options, Sandbox

LOG = logging.getLogger("somebody-else")


@pytest.fixture
async def kubeconfig(tmp_path: Path) -> AsyncIterator[Path]:
    """A cluster with its own controllers and scheduler, and this project's operator; no nodes."""
    server, stop = await ApiServer.start(Settings()), asyncio.Event()
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(server.kubeconfig()))
    clusters = [LeanCluster(credentials.from_kubeconfig(path)) for _ in range(2)]
    jobs = [
        asyncio.create_task(part.run(cluster, LOG, stop))
        for part, cluster in zip((workloads, scheduling), clusters, strict=True)
    ]
    await installing.install_definitions(clusters[0])
    await installing.install_operator(clusters[0])
    yield path
    stop.set()
    await asyncio.gather(*jobs)
    for cluster in clusters:
        await cluster.close()
    await server.stop()


async def test_attached_nodes_work_and_go(kubeconfig: Path) -> None:
    """They run the operator's pods and show their GPUs; when the sandbox ends, the cluster has no trace of them."""
    async with Sandbox(Options(attach_to=kubeconfig, nodes=2)) as sandbox:
        assert await sandbox.ready()
        async for event in sandbox.cluster.watch(manifests.NODE, resource_version="0"):
            status = event.object.get("status") or {}
            if (status.get("allocatable") or {}).get(names.RESOURCE_GPU) == "4":
                break
        assert event.object["metadata"]["labels"][names.LABEL_SIMULATED] == "true"

    cluster = LeanCluster(credentials.from_kubeconfig(kubeconfig))
    assert (await cluster.list(manifests.NODE)).items == ()
    await cluster.close()


async def test_a_real_node_is_left_alone(kubeconfig: Path) -> None:
    """A name that the cluster has is refused, with its place, before anything is written."""
    cluster = LeanCluster(credentials.from_kubeconfig(kubeconfig))
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu02"}}
    created = await cluster.create(node)

    with pytest.raises(ConfigurationError, match=r'nodes\[1\].name: "gpu02" is a node of that cluster already'):
        async with Sandbox(Options(attach_to=kubeconfig, nodes=2)):
            pass

    found = (await cluster.list(manifests.NODE)).items
    await cluster.close()
    assert [found[0]["metadata"]["uid"]] == [created["metadata"]["uid"]]
    assert names.LABEL_SIMULATED not in found[0]["metadata"].get("labels", {})
