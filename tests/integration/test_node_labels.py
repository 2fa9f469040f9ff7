"""Labels of nodes, from discovery to uninstall, as people and other programs change them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpushare import names
from gpushare.domain import manifests
from gpushare.kube.credentials import from_kubeconfig
from gpushare.kube.lean import LeanCluster
from gpushare.plan.nodes import DEPLOYED
from support.clusters import GpuCluster

DEPLOY = names.LABEL_DEPLOY_PREFIX
PCI = names.LABELS_NFD_GPU[0]
PLUGIN = names.LABEL_DEPLOY_DEVICE_PLUGIN
COUNT = f"{names.RESOURCE_GPU}.count"
FACTS = {COUNT: "4", names.LABEL_PRODUCT: "Tesla-T4", names.LABEL_MIG_CAPABLE: "false"}
PRESENT_AND_DEPLOYED = {names.LABEL_PRESENT: "true", **{DEPLOY + component: "true" for component in DEPLOYED}}


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[GpuCluster]:
    async with GpuCluster.running(tmp_path) as cluster:
        await cluster.add_node("gpu01")
        await cluster.apply_policy()
        yield cluster


async def labels_of(cluster: GpuCluster) -> dict[str, str]:
    labels = (await cluster.get(manifests.NODE, "gpu01"))["metadata"]["labels"]
    return {key: value for key, value in labels.items() if key.startswith(names.PREFIX)}


async def until_labels(cluster: GpuCluster, expected: dict[str, str]) -> None:
    async def are_so() -> bool:
        found = await labels_of(cluster)
        assert found == expected
        return True

    await cluster.until("labels", are_so)


async def relabel(cluster: GpuCluster, changes: dict[str, str | None]) -> None:
    assert await cluster.admin.patch(manifests.NODE, "gpu01", {"metadata": {"labels": changes}})


async def test_discovered(cluster: GpuCluster) -> None:
    """One write for all that a node gets at first, one for what its agent has found, with what follows from that."""
    async with cluster.controller():
        await until_labels(cluster, PRESENT_AND_DEPLOYED)
        await cluster.run_agent("gpu01", labels={**FACTS, names.LABEL_MIG_CAPABLE: "true"})
        mig = {names.LABEL_MIG_CAPABLE: "true", f"{DEPLOY}mig-manager": "true"}
        await until_labels(cluster, {**PRESENT_AND_DEPLOYED, **FACTS, **mig})

        await cluster.report("gpu01", labels=FACTS)
        await until_labels(cluster, {**PRESENT_AND_DEPLOYED, **FACTS})
        await relabel(cluster, {f"{DEPLOY}dcgm": None})
        await until_labels(cluster, {**PRESENT_AND_DEPLOYED, **FACTS})

    assert len([write for write in cluster.writes if write.endswith("/nodes/gpu01")]) == 4


async def test_opted_out_of_everything(cluster: GpuCluster) -> None:
    """`operands=false` leaves nothing on the node but that it has GPUs; without that label all is back."""
    async with cluster.controller():
        await cluster.until_config("gpu01", reason="none")
        await cluster.run_agent("gpu01", labels=FACTS)
        await until_labels(cluster, {**PRESENT_AND_DEPLOYED, **FACTS})

        await relabel(cluster, {names.LABEL_DEPLOY_OPERANDS: "false"})
        await until_labels(cluster, {names.LABEL_PRESENT: "true", names.LABEL_DEPLOY_OPERANDS: "false"})
        await cluster.until("no GPUNode", lambda: gone(cluster))

        await relabel(cluster, {names.LABEL_DEPLOY_OPERANDS: None})
        await cluster.until_config("gpu01", reason="none")
        await cluster.report("gpu01", labels=FACTS)
        await until_labels(cluster, {**PRESENT_AND_DEPLOYED, **FACTS})


async def test_discovery_blinks(cluster: GpuCluster) -> None:
    """Without its label the node keeps everything, over a restart of the controller too; when the time is over, it goes."""
    async with cluster.controller("--discovery-grace-seconds=60"):
        await cluster.until_config("gpu01", reason="none")
        await relabel(cluster, {f"{DEPLOY}dcgm": "false"})
        await until_labels(cluster, {**PRESENT_AND_DEPLOYED, f"{DEPLOY}dcgm": "false"})
        await cluster.quiet()
        cluster.writes.clear()

        await relabel(cluster, {PCI: None})
        since = (await cluster.until("the condition", lambda: lost(cluster)))["lastTransitionTime"]
        await relabel(cluster, {PCI: "true"})
        await cluster.until("no condition", lambda: found_again(cluster))
        await cluster.quiet(0.5)
        assert [write for write in cluster.writes if write.endswith("/nodes/gpu01")] == []

        await relabel(cluster, {PCI: None})
        since = (await cluster.until("the condition", lambda: lost(cluster)))["lastTransitionTime"]
    async with cluster.controller("--discovery-grace-seconds=3"):
        assert (await cluster.until("the condition", lambda: lost(cluster)))["lastTransitionTime"] == since
        await until_labels(cluster, {names.LABEL_PRESENT: "false", f"{DEPLOY}dcgm": "false"})
        await cluster.until("no GPUNode", lambda: gone(cluster))

        await relabel(cluster, {PCI: "true"})
        await until_labels(cluster, {**PRESENT_AND_DEPLOYED, f"{DEPLOY}dcgm": "false"})


async def lost(cluster: GpuCluster) -> dict[str, Any] | None:
    conditions = (await cluster.get(manifests.GPU_NODE, "gpu01"))["status"]["conditions"]
    return next((condition for condition in conditions if condition["type"] == "Discovered"), None)


async def found_again(cluster: GpuCluster) -> bool:
    return await lost(cluster) is None


async def gone(cluster: GpuCluster) -> bool:
    return await cluster.admin.get(manifests.GPU_NODE, "gpu01") is None


async def test_feature_discovery_of_nvidia(cluster: GpuCluster, tmp_path: Path) -> None:
    """What node feature discovery maintains is left to it, with one sentence on the policy; afterwards it is ours."""
    path = tmp_path / "nfd.yaml"
    path.write_text(yaml.safe_dump(cluster.server.kubeconfig("admin")))
    nfd = LeanCluster(from_kubeconfig(path), user_agent="nfd-master/v0.18.0 (linux/amd64)")
    theirs = {COUNT: "8", f"{names.PREFIX}gfd.timestamp": "1"}
    maintained = {names.ANNOTATION_NFD_LABELS: ",".join(theirs)}
    metadata = {"labels": theirs, "annotations": maintained}
    await nfd.patch(manifests.NODE, "gpu01", {"metadata": metadata})
    async with cluster.controller():
        await cluster.until_config("gpu01", reason="none")
        await cluster.run_agent("gpu01", labels={**FACTS, f"{names.PREFIX}gfd.timestamp": "2"})
        await cluster.until_condition("Conflict", "True", saying="node feature discovery writes")
        await until_labels(cluster, {**PRESENT_AND_DEPLOYED, **FACTS, **theirs})
        await cluster.quiet()
        cluster.writes.clear()
        for count in range(5):
            theirs |= {COUNT: str(count)}
            await nfd.patch(manifests.NODE, "gpu01", {"metadata": {"labels": theirs}})
        await cluster.quiet()
        assert cluster.writes_to("nodes", "clusterpolicies") == []

        leaving: dict[str, None] = dict.fromkeys(theirs)
        metadata = {"labels": leaving, "annotations": {names.ANNOTATION_NFD_LABELS: ""}}
        await nfd.patch(manifests.NODE, "gpu01", {"metadata": metadata})
        await until_labels(cluster, {**PRESENT_AND_DEPLOYED, **FACTS, f"{names.PREFIX}gfd.timestamp": "2"})
        await cluster.until_condition("Conflict", "False")
    await nfd.close()


async def test_a_node_that_joins_again(cluster: GpuCluster) -> None:
    """Whatever comes first, labels of discovery, of a person, or the agent's report: all labels are there in the end."""
    async with cluster.controller():
        await until_labels(cluster, PRESENT_AND_DEPLOYED)
        await cluster.admin.delete(manifests.NODE, "gpu01")
        await cluster.add_node("gpu01", gpu=False, **{names.LABEL_MIG_CONFIG: "all-1g.5gb"})
        await cluster.quiet(0.5)
        await relabel(cluster, {PCI: "true"})

        await until_labels(cluster, {**PRESENT_AND_DEPLOYED, names.LABEL_MIG_CONFIG: "all-1g.5gb"})


async def test_mig_manager(cluster: GpuCluster) -> None:
    """Told where to begin, as the policy wants it; what somebody tells it then is not touched."""
    await cluster.apply_policy(migManager={"config": {}})
    capable = {names.LABEL_MIG_CAPABLE: "true"}
    deployed = {**PRESENT_AND_DEPLOYED, **capable, f"{DEPLOY}mig-manager": "true"}
    async with cluster.controller():
        await cluster.until_config("gpu01", reason="none")
        await cluster.run_agent("gpu01", labels=capable)
        await until_labels(cluster, {**deployed, names.LABEL_MIG_CONFIG: "all-disabled"})

        await relabel(cluster, {names.LABEL_MIG_CONFIG: "all-1g.5gb"})
        await cluster.quiet(0.5)
        await until_labels(cluster, {**deployed, names.LABEL_MIG_CONFIG: "all-1g.5gb"})
