"""Beside, after and before NVIDIA's operator, and among others who write what we write: nobody is fought, and it is said."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpushare import names
from gpushare.domain import manifests
from gpushare.kube.credentials import from_kubeconfig
from gpushare.kube.lean import LeanCluster
from support.clusters import NAMESPACE, POLICY, GpuCluster
from support.nvidia_operator import PROGRAM, NvidiaOperator

DAEMONSET = (manifests.DAEMON_SET, names.DAEMONSET_DEVICE_PLUGIN, NAMESPACE)
DEPLOY = names.LABEL_DEPLOY_PREFIX
PLUGIN = names.LABEL_DEPLOY_DEVICE_PLUGIN
PCI = names.LABELS_NFD_GPU[0]


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[GpuCluster]:
    async with GpuCluster.running(tmp_path) as cluster:
        await cluster.add_node("gpu01")
        yield cluster


@pytest.fixture
async def program(cluster: GpuCluster, tmp_path: Path) -> AsyncIterator[LeanCluster]:
    """How NVIDIA's operator reaches the cluster."""
    path = tmp_path / "nvidia.yaml"
    path.write_text(yaml.safe_dump(cluster.server.kubeconfig("admin")))
    lean = LeanCluster(from_kubeconfig(path), user_agent=PROGRAM)
    yield lean
    await lean.close()


async def labels_of(cluster: GpuCluster, node: str = "gpu01") -> dict[str, str]:
    return (await cluster.get(manifests.NODE, node))["metadata"]["labels"]


async def template_of(cluster: GpuCluster) -> dict[str, Any]:
    return (await cluster.get(*DAEMONSET))["spec"]["template"]


async def is_ours(cluster: GpuCluster) -> bool:
    found = await cluster.admin.get(*DAEMONSET)
    return bool(found) and found["metadata"]["labels"].get(names.LABEL_MANAGED_BY) == names.CONTROLLER


async def test_after(cluster: GpuCluster, program: LeanCluster) -> None:
    """Its DaemonSet becomes ours in place, without anything of its containers; then nothing more is written."""
    policy = await cluster.apply_policy()
    async with cluster.controller():
        await cluster.until("a DaemonSet of ours", lambda: is_ours(cluster))
        ours = await template_of(cluster)
    await cluster.admin.delete(*DAEMONSET)
    await NvidiaOperator(program, NAMESPACE).take(policy)
    uid = (await cluster.get(*DAEMONSET))["metadata"]["uid"]

    async with cluster.controller():
        await cluster.until("a DaemonSet of ours", lambda: is_ours(cluster))
        await cluster.quiet()

    found = await cluster.get(*DAEMONSET)
    assert found["metadata"]["uid"] == uid
    assert found["spec"]["template"] == ours
    assert "config-manager" not in str(found["spec"])
    assert len([write for write in cluster.writes_to("daemonsets") if "/daemonsets/" in write]) <= 4
