"""What the controller makes of nodes whose labels ask for fractions: configuration, taint, rights of their agents."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from gpushare import names
from gpushare.controller import cleanup
from gpushare.domain import manifests
from support.clusters import NAMESPACE, GpuCluster

THEIRS = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
OURS = {"key": names.TAINT_FRACTIONS, "effect": "NoSchedule"}


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[GpuCluster]:
    """A node whose owner has tainted it for other reasons."""
    async with GpuCluster.running(tmp_path) as cluster:
        await cluster.add_node("gpu01")
        await relabel(cluster, gpu="on")
        assert await cluster.admin.patch(manifests.NODE, "gpu01", {"spec": {"taints": [THEIRS]}})
        await cluster.apply_policy()
        yield cluster


async def until_tainted(cluster: GpuCluster, *expected: dict[str, str]) -> None:
    async def holds() -> bool:
        return (await cluster.get(manifests.NODE, "gpu01"))["spec"].get("taints", []) == list(expected)

    await cluster.until(f"taints are {expected}", holds)


async def relabel(cluster: GpuCluster, **labels: str | None) -> None:
    keys = {"schedule": names.LABEL_ACK_SCHEDULE, "gpu": names.LABEL_HAMI_NODE}
    body = {"metadata": {"labels": {keys[key]: value for key, value in labels.items()}}}
    assert await cluster.admin.patch(manifests.NODE, "gpu01", body)


async def test_label_of_hami(cluster: GpuCluster) -> None:
    """Counts where it was enabled: taint and configuration come, and go again when the agent has left the mode."""
    async with cluster.controller("--hami-node-label=true", "--fractions-isolation=mps"):
        config = await cluster.until_config("gpu01", name="gpu=on", reason="hami")
        await until_tainted(cluster, THEIRS, OURS)
        await cluster.report("gpu01", fractions={"dialect": "hami"})

        await relabel(cluster, gpu=None)
        await cluster.until_config("gpu01", name="none", reason="none")
        await cluster.quiet()
        await until_tainted(cluster, THEIRS, OURS)
        await cluster.report("gpu01")
        await until_tainted(cluster, THEIRS)

    assert "fractions: hami\n  isolation: mps\n" in config["content"]


async def test_label_of_hami_is_one_of_many(cluster: GpuCluster) -> None:
    """Other people call their nodes `gpu=on` too: nothing happens unless somebody said so."""
    async with cluster.controller():
        await cluster.until_config("gpu01", name="none")
        await cluster.quiet()

        await until_tainted(cluster, THEIRS)


async def test_rights_come_and_go(cluster: GpuCluster) -> None:
    """Agents see pods while a node gives out fractions, and no longer."""

    async def granted() -> bool:
        role = await cluster.admin.get(manifests.CLUSTER_ROLE, names.CLUSTER_ROLE_FRACTIONS)
        binding = await cluster.admin.get(manifests.CLUSTER_ROLE_BINDING, names.CLUSTER_ROLE_FRACTIONS)
        return role is not None and binding is not None

    async def not_granted() -> bool:
        return not await granted()

    async with cluster.controller():
        await cluster.until_config("gpu01", name="none")
        assert not await granted()
        await relabel(cluster, schedule="cgpu")
        await cluster.until_config("gpu01", name="ack.node.gpu.schedule=cgpu", reason="ack")
        await cluster.until("rights are there", granted)
        await until_tainted(cluster, THEIRS)

        await relabel(cluster, schedule="default")
        await cluster.until_config("gpu01", name="ack.node.gpu.schedule=default")
        await cluster.until("rights are gone", not_granted)


async def test_unknown_mode(cluster: GpuCluster) -> None:
    """The node keeps what it has; the policy and the node say which word is wrong and which there are."""
    async with cluster.controller():
        await relabel(cluster, schedule="share")
        await cluster.until_config("gpu01", name="ack.node.gpu.schedule=share")
        await relabel(cluster, schedule="shared")
        told = await cluster.until_condition("ConfigValid", "False", saying='ack.node.gpu.schedule says "shared"')

        assert told["message"].endswith("write one of default, cgpu, core_mem, share, mps, topology, mig")
        await cluster.until_config("gpu01", name="ack.node.gpu.schedule=share")


async def test_cleanup_takes_the_taint(cluster: GpuCluster, tmp_path: Path) -> None:
    """Ours, and nobody else's."""
    async with cluster.controller("--hami-node-label=true"):
        await until_tainted(cluster, THEIRS, OURS)
    path = tmp_path / "admin.yaml"
    path.write_text(yaml.safe_dump(cluster.server.kubeconfig("admin", namespace=NAMESPACE)))

    code = await cleanup.run(
        ["--kubeconfig", str(path)], {}, root=tmp_path, log=logging.getLogger("cleanup"), stop=asyncio.Event()
    )

    assert code == 0
    await until_tainted(cluster, THEIRS)
