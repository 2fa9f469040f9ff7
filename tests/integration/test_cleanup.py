"""`gpushare cleanup`: what the controller made goes, what anybody else made stays, and what is left is said."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpushare import names
from gpushare.controller import cleanup
from gpushare.domain import manifests
from gpushare.plan import components, reading
from support.agents import until_logged
from support.clusters import NAMESPACE, POLICY, GpuCluster
from support.snapshots import time_slicing

FOREIGN = "nvidia.com/gpu.deploy.driver"
LOG = logging.getLogger("cleanup")


@pytest.fixture
async def cluster(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> AsyncIterator[GpuCluster]:
    """A node whose owner has opted out of something, and one that the operator labels in full."""
    caplog.set_level(logging.INFO, LOG.name)
    async with GpuCluster.running(tmp_path) as cluster:
        await cluster.add_node("gpu01")
        await cluster.add_node("gpu02", **{FOREIGN: "false"})
        yield cluster


async def clean(cluster: GpuCluster, folder: Path, *argv: str, namespace: str = NAMESPACE) -> int:
    path = folder / "admin-of-cleanup.yaml"
    path.write_text(yaml.safe_dump(cluster.server.kubeconfig("admin", namespace=namespace)))
    stop = asyncio.Event()
    return await cleanup.run(["--kubeconfig", str(path), *argv], {}, root=folder, log=LOG, stop=stop)


async def labelled(cluster: GpuCluster) -> dict[str, frozenset[str]]:
    """What our field manager owns on each node."""
    nodes = (await cluster.admin.list(manifests.NODE)).items
    return {node["metadata"]["name"]: reading.node_of(node).owned for node in nodes}


async def made_of_ours(cluster: GpuCluster) -> list[str]:
    keys = [
        key for key in components.all_keys(NAMESPACE) if key.kind is not manifests.SERVICE_MONITOR
    ]  # no such kind here
    live = [(key, await cluster.admin.get(key.kind, key.name, key.namespace)) for key in keys]
    gpu_nodes = await cluster.admin.names(manifests.GPU_NODE)
    return sorted([str(key) for key, manifest in live if manifest] + [f"GPUNode {name}" for name in gpu_nodes])


async def test_everything_of_ours_goes(cluster: GpuCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Labels, GPUNodes and objects; not the policy, not the configurations, not a label of somebody else. Twice is once."""
    await cluster.apply_config("sharing", any=time_slicing(2))
    await cluster.apply_policy(devicePlugin={"config": {"name": "sharing", "default": "any"}})
    async with cluster.controller():
        for node in ("gpu01", "gpu02"):
            await cluster.until_config(node, name="any")
        await cluster.until("both nodes are labelled", lambda: _all_labelled(cluster))
        annotations = (await cluster.get(manifests.NODE, "gpu02"))["metadata"]["annotations"]
        assert annotations[names.ANNOTATION_OPTED_OUT] == "driver"
    before = await made_of_ours(cluster)
    assert "GPUNode gpu01" in before
    assert f"DaemonSet {NAMESPACE}/{names.DAEMONSET_DEVICE_PLUGIN}" in before

    assert await clean(cluster, tmp_path) == 0

    assert await made_of_ours(cluster) == []
    assert await labelled(cluster) == {"gpu01": frozenset(), "gpu02": frozenset()}
    metadata = (await cluster.get(manifests.NODE, "gpu02"))["metadata"]
    assert names.ANNOTATION_OPTED_OUT not in (metadata.get("annotations") or {})
    labels = metadata["labels"]
    assert {key: value for key, value in labels.items() if key.startswith(names.PREFIX)} == {FOREIGN: "false"}
    assert await cluster.get(manifests.CLUSTER_POLICY, POLICY)
    assert await cluster.get(manifests.CONFIG_MAP, "sharing", NAMESPACE)
    assert await cluster.admin.get(manifests.LEASE, names.LEASE, NAMESPACE) is None
    assert names.DAEMONSET_DEVICE_PLUGIN in str([getattr(record, "found", "") for record in caplog.records])

    version = (await cluster.admin.list(manifests.NODE)).resource_version
    assert await clean(cluster, tmp_path) == 0
    assert (await cluster.admin.list(manifests.NODE)).resource_version == version, "a second time writes nothing"


async def _all_labelled(cluster: GpuCluster) -> bool:
    return all((await labelled(cluster)).values())


async def test_namesakes_stay(cluster: GpuCluster, tmp_path: Path) -> None:
    """An account with our name that somebody else made, as NVIDIA's operator has one, is not ours."""
    account = {"name": names.SERVICE_ACCOUNT_DEVICE_PLUGIN, "namespace": NAMESPACE}
    await cluster.admin.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})

    assert await clean(cluster, tmp_path) == 0

    assert await cluster.get(manifests.SERVICE_ACCOUNT, account["name"], NAMESPACE)


async def test_without_kinds(cluster: GpuCluster, tmp_path: Path) -> None:
    """Who has deleted the CRDs first can clean up all the same."""
    await cluster.admin.delete(manifests.CUSTOM_RESOURCE_DEFINITION, "gpunodes.gpushare.dev")

    assert await clean(cluster, tmp_path) == 0


async def test_controller_that_does_not_end(
    cluster: GpuCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is removed under a controller that would make it anew; after a while it is named."""
    await cluster.admin.create(_pod_of_controller())

    assert await clean(cluster, tmp_path, "--timeout-seconds=2") == 1

    assert "Pod controller-that-hangs" in [getattr(record, "left", "") for record in caplog.records]


def _pod_of_controller() -> dict[str, Any]:
    metadata = {"name": "controller-that-hangs", "namespace": NAMESPACE, "labels": {"app": names.CONTROLLER}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": "gpu01", "containers": [{"name": "controller", "image": "x"}]},
    }


async def test_refused(cluster: GpuCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Without rights, the one that lacks is said."""
    path = tmp_path / "nobody.yaml"
    path.write_text(yaml.safe_dump(cluster.server.kubeconfig("nobody", namespace=NAMESPACE)))
    stop = asyncio.Event()
    running = asyncio.create_task(cleanup.run(["--kubeconfig", str(path)], {}, root=tmp_path, log=LOG, stop=stop))
    await until_logged(caplog, "cleaning up")
    stop.set()

    assert await running == 1
    assert '"nobody" cannot patch resource "deployments"' in caplog.records[-1].left


@pytest.mark.parametrize(
    "argv",
    [
        pytest.param(["--force"], id="an unknown flag"),
        pytest.param(["--timeout-seconds=0"], id="no time"),
        pytest.param(["--timeout-seconds=nan"], id="no number"),
        pytest.param([], id="neither a pod nor a kubeconfig"),
    ],
)
async def test_wrong_usage(argv: list[str], tmp_path: Path) -> None:
    """Said, and the exit code is that of wrong usage."""
    assert await cleanup.run(argv, {}, root=tmp_path, log=LOG, stop=asyncio.Event()) == 2
