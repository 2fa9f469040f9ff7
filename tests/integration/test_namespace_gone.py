"""The operator's namespace is deleted with everything in it, and made again: nodes keep what they run meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.gpunode import AGENT_READY
from support.clusters import NAMESPACE, GpuCluster
from support.snapshots import time_slicing

DAEMONSET = (manifests.DAEMON_SET, names.DAEMONSET_DEVICE_PLUGIN, NAMESPACE)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[GpuCluster]:
    async with GpuCluster.running(tmp_path) as cluster:
        await cluster.add_node("gpu01")
        await cluster.apply_config("sharing", any=time_slicing(4))
        await cluster.apply_policy(devicePlugin={"config": {"name": "sharing", "default": "any"}})
        yield cluster


async def until_at_work(cluster: GpuCluster) -> None:
    """The node is given its configuration, and an agent applies it."""
    await cluster.until_config("gpu01", content=time_slicing(4))
    await cluster.until("the DaemonSet is there", lambda: cluster.admin.get(*DAEMONSET))
    await cluster.roll_out()
    await cluster.run_agent("gpu01")
    await cluster.until_condition("Ready", "True")


async def delete_namespace(cluster: GpuCluster) -> None:
    async def is_gone() -> bool:
        return await cluster.admin.get(manifests.NAMESPACE, NAMESPACE) is None

    await cluster.admin.delete(manifests.NAMESPACE, NAMESPACE)
    # What a kubelet says once its containers have ended; the namespace waits for that.
    await cluster.admin.delete(manifests.POD, "agent-gpu01", NAMESPACE, grace_seconds=0)
    await cluster.until("the namespace is gone", is_gone)
    assert await cluster.admin.get(*DAEMONSET) is None


async def tells_of_no_agent(cluster: GpuCluster) -> bool:
    conditions = (await cluster.get(manifests.GPU_NODE, "gpu01"))["status"]["conditions"]
    return any((each["type"], each["status"]) == (AGENT_READY, "False") for each in conditions)


async def test_under_a_controller(cluster: GpuCluster) -> None:
    """The controller lives on: the policy names what is missing, nothing is taken from a node, and all comes back."""
    # With a Lease, it would stop to lead, since that is gone too.
    async with cluster.controller("--leader-elect=false"):
        await until_at_work(cluster)

        await delete_namespace(cluster)
        await cluster.until_condition("ConfigValid", "False", saying='gpu01 keeps "any"')
        await cluster.until_condition("Error", "True", saying=f'in the namespace "{NAMESPACE}"')
        await cluster.until_condition("Permitted", "False", saying="install the ClusterRole and the Role")
        await cluster.until("the GPUNode tells", lambda: tells_of_no_agent(cluster))
        assert (await cluster.get(manifests.GPU_NODE, "gpu01"))["spec"]["config"]["content"] == time_slicing(4)
        assert (await cluster.get(manifests.NODE, "gpu01"))["metadata"]["labels"][names.LABEL_PRESENT] == "true"

        await cluster.install()
        await cluster.apply_config("sharing", any=time_slicing(4))
        await until_at_work(cluster)
        await cluster.until_condition("Permitted", "True")
        await cluster.until_condition("ConfigValid", "True")


async def test_with_the_controller(cluster: GpuCluster) -> None:
    """The controller goes with its namespace: the next installation finds policy and nodes, and goes on where it was."""
    async with cluster.controller():
        await until_at_work(cluster)
    before = (await cluster.get(manifests.GPU_NODE, "gpu01"))["spec"]
    await delete_namespace(cluster)

    await cluster.install()
    async with cluster.controller(identity="another"):
        await cluster.until_condition("ConfigValid", "False", saying='gpu01 keeps "any"')
        assert (await cluster.get(manifests.GPU_NODE, "gpu01"))["spec"] == before
        await cluster.apply_config("sharing", any=time_slicing(4))
        await until_at_work(cluster)

    assert (await cluster.get(manifests.GPU_NODE, "gpu01"))["spec"] == before


async def test_while_leading(cluster: GpuCluster) -> None:
    """The Lease goes too: whoever leads leads on, or again, once there is a namespace to lead in."""
    async with cluster.controller():
        await until_at_work(cluster)

        await delete_namespace(cluster)
        await cluster.install()
        await cluster.apply_config("sharing", any=time_slicing(4))
        await until_at_work(cluster)

        async def leads() -> bool:
            lease = await cluster.get(manifests.LEASE, names.LEASE, NAMESPACE)
            return lease["spec"]["holderIdentity"] == "controller-0"

        await cluster.until("it leads", leads)
