"""Beside, after and before NVIDIA's operator, and among others who write what we write: nobody is fought, and it is said."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpushare import data, names
from gpushare.controller import cleanup
from gpushare.domain import manifests
from gpushare.kube.credentials import from_kubeconfig
from gpushare.kube.lean import LeanCluster
from support.clusters import NAMESPACE, POLICY, GpuCluster
from support.nvidia_operator import PROGRAM, NvidiaOperator
from support.snapshots import time_slicing

EXAMPLE = data.path_of("examples") / "10-beside-nvidias-operator" / "sharing-policy.yaml"
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


async def relabel(cluster: GpuCluster, changes: dict[str, str | None]) -> None:
    """What a person types."""
    assert await cluster.admin.patch(manifests.NODE, "gpu01", {"metadata": {"labels": changes}})


async def _has(cluster: GpuCluster, key: str, value: str = "true") -> bool:
    return (await labels_of(cluster)).get(key) == value


async def _remembers(cluster: GpuCluster, component: str) -> bool:
    annotations = (await cluster.get(manifests.NODE, "gpu01"))["metadata"].get("annotations") or {}
    return annotations.get(names.ANNOTATION_OPTED_OUT) == component


async def _has_answered(cluster: GpuCluster, is_back: Awaitable[bool]) -> bool:
    """Whether the controller has put right what others do, or has given up."""
    return await is_back or (await cluster.condition("Conflict"))["status"] == "True"


async def _is_lost(cluster: GpuCluster) -> bool:
    conditions = (await cluster.get(manifests.GPU_NODE, "gpu01"))["status"]["conditions"]
    return "Discovered" in {condition["type"] for condition in conditions}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


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


async def test_same_namespace(cluster: GpuCluster, program: LeanCluster) -> None:
    """Where NVIDIA's operator works, nothing is written but why; once it is scaled down, everything is."""
    nvidia = NvidiaOperator(program, NAMESPACE)
    await nvidia.lead(_now())
    await cluster.apply_policy()
    async with cluster.controller():
        await cluster.until_condition("Conflict", "True", saying="scale it down")
        await cluster.quiet()
        assert not await is_ours(cluster)
        assert await cluster.admin.get(manifests.GPU_NODE, "gpu01") is None

        await nvidia.lead("2026-01-01T00:00:00.000000Z")
        await relabel(cluster, {f"{names.PREFIX}anything": "happens"})
        await cluster.until_condition("Conflict", "False")
        await cluster.until("a DaemonSet of ours", lambda: is_ours(cluster))


async def test_it_comes_back(cluster: GpuCluster, program: LeanCluster) -> None:
    """A DaemonSet that NVIDIA's operator takes back, because somebody has scaled it up again, is not taken once more."""
    nvidia = NvidiaOperator(program, NAMESPACE)
    policy = await cluster.apply_policy()
    async with cluster.controller():
        await cluster.until("a DaemonSet of ours", lambda: is_ours(cluster))
        await cluster.quiet()
        cluster.writes.clear()

        await nvidia.lead(_now())
        await nvidia.take(policy)
        await cluster.until_condition("Conflict", "True", saying="at work in namespace")
        await cluster.quiet()

    assert not await is_ours(cluster)
    assert cluster.writes_to("daemonsets", "nodes", "gpunodes") == []


async def test_same_policy_elsewhere(cluster: GpuCluster, program: LeanCluster) -> None:
    """Of a policy that NVIDIA's operator follows from its own namespace only `Conflict` is written, once."""
    await cluster.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "nvidia"}})
    await NvidiaOperator(program, "nvidia").lead(_now())
    await cluster.apply_policy()
    theirs = {"status": {"state": "ready", "namespace": "nvidia"}}
    await program.patch(manifests.CLUSTER_POLICY, POLICY, theirs, subresource="status")
    async with cluster.controller("--resync-seconds=3"):
        await cluster.until_condition("Conflict", "True", saying="--policy")
        for _ in range(5):
            await program.patch(manifests.CLUSTER_POLICY, POLICY, theirs, subresource="status")
            await cluster.quiet(0.3)

    status = (await cluster.get(manifests.CLUSTER_POLICY, POLICY))["status"]
    assert (status["state"], status["namespace"]) == ("ready", "nvidia")
    assert {condition["type"] for condition in status["conditions"]} == {"Conflict"}
    assert [
        write for write in cluster.writes_to("clusterpolicies", "nodes", "daemonsets") if "/status" not in write
    ] == []
    assert len(cluster.writes_to("clusterpolicies")) == 1


async def test_beside(cluster: GpuCluster, program: LeanCluster) -> None:
    """From a namespace of its own, for a policy of its own: its labels are used, its passes delete nothing of ours."""
    await cluster.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "nvidia"}})
    nvidia = NvidiaOperator(program, "nvidia")
    await nvidia.lead(_now())
    await cluster.apply_policy("cluster-policy", devicePlugin={"enabled": False}, gfd={"enabled": False})
    await cluster.apply_config("time-slicing-config-all", any=time_slicing(4))
    await cluster.admin.create(yaml.safe_load(EXAMPLE.read_text()))
    await nvidia.label_nodes()
    async with cluster.controller("--policy=sharing", "--discovery-grace-seconds=30"):
        await cluster.until_config("gpu01", name="any")
        await cluster.until("a DaemonSet of ours", lambda: is_ours(cluster))
        await cluster.quiet()
        before = len(cluster.writes)
        for _ in range(5):
            assert await nvidia.remove_disabled() == 0
            assert await nvidia.label_nodes() == 0
        await cluster.quiet(0.5)
        assert [write for write in cluster.writes[before:] if "/leases" not in write] == []

        # Discovery blinks: it takes everything away at once, and we put back what the agent needs, once.
        await relabel(cluster, {PCI: None})
        assert await nvidia.label_nodes() == 1
        await cluster.until("the agent's label", lambda: _has(cluster, PLUGIN))
        for _ in range(5):
            assert await nvidia.label_nodes() == 0
        await cluster.quiet(0.5)
        assert len([write for write in cluster.writes[before:] if "/nodes/" in write]) == 1
        await relabel(cluster, {PCI: "true"})
        await nvidia.label_nodes()
        await cluster.quiet(0.5)
        assert len([write for write in cluster.writes[before:] if "/nodes/" in write]) <= 2
    assert "status" not in await cluster.get(manifests.CLUSTER_POLICY, "cluster-policy")


async def test_opt_out_beside(cluster: GpuCluster, program: LeanCluster) -> None:
    """An opt-out survives what NVIDIA's operator makes of a blinking discovery, and a controller that is not there."""
    nvidia = NvidiaOperator(program, "nvidia")
    await cluster.apply_policy()
    async with cluster.controller():
        await cluster.until("labels", lambda: _has(cluster, PLUGIN))
        await relabel(cluster, {PLUGIN: "false"})
        await cluster.until("it is remembered", lambda: _remembers(cluster, "device-plugin"))
        await relabel(cluster, {PCI: None})
        await nvidia.label_nodes()
        await cluster.until("the node is watched", lambda: _is_lost(cluster))
    await relabel(cluster, {PCI: "true"})
    await nvidia.label_nodes()
    assert (await labels_of(cluster))[PLUGIN] in {"true", "false"}

    async with cluster.controller():
        await cluster.until("it is out again", lambda: _has(cluster, PLUGIN, "false"))
        # It may have been out all the time. This one has seen it so only when it works on other nodes, too.
        await cluster.add_node("gpu02")
        await cluster.until_config("gpu02")
        await relabel(cluster, {PLUGIN: None})
        await cluster.until("and back", lambda: _has(cluster, PLUGIN))
        assert not await _remembers(cluster, "device-plugin")


@pytest.mark.parametrize(
    "value", [pytest.param("theirs", id="writes another value"), pytest.param(None, id="takes it away")]
)
async def test_no_war_over_labels(cluster: GpuCluster, program: LeanCluster, value: str | None) -> None:
    """A program that changes a label of ours every time gets it after three writes of ours, and the policy says so."""
    key = f"{DEPLOY}driver" if value is None else names.LABEL_PRESENT
    await cluster.apply_policy()
    async with cluster.controller():
        await cluster.until("labels", lambda: _has(cluster, key))
        for _ in range(8):
            await program.patch(manifests.NODE, "gpu01", {"metadata": {"labels": {key: value}}})
            await cluster.until("ours again", lambda: _has_answered(cluster, _has(cluster, key)))
        await cluster.until_condition("Conflict", "True", saying=key)
        labels = await labels_of(cluster)
        await cluster.quiet()

    assert labels.get(key) == value
    assert labels[PLUGIN] == "true"
    assert len([write for write in cluster.writes if write.endswith("/nodes/gpu01")]) <= 5


async def test_no_war_over_objects(cluster: GpuCluster, program: LeanCluster) -> None:
    """Objects that somebody deletes every time are made a few times, and then not for a while."""
    await cluster.apply_policy()
    async with cluster.controller():
        await cluster.until("a DaemonSet of ours", lambda: is_ours(cluster))
        for _ in range(8):
            await program.delete(*DAEMONSET)
            await cluster.until("ours again", lambda: _has_answered(cluster, is_ours(cluster)))
        await cluster.until_condition("Conflict", "True", saying="again and again")

    assert await cluster.admin.get(*DAEMONSET) is None
    assert len(cluster.writes_to("daemonsets")) <= 7


async def test_before(cluster: GpuCluster, program: LeanCluster, tmp_path: Path) -> None:
    """NVIDIA's operator takes its DaemonSet back from us as we took it; what we clean up afterwards is ours only."""
    policy = await cluster.apply_policy()
    async with cluster.controller():
        await cluster.until("a DaemonSet of ours", lambda: is_ours(cluster))
        await cluster.until("labels", lambda: _has(cluster, PLUGIN))
    assert (await cluster.get(*DAEMONSET))["metadata"]["annotations"], "without any, NVIDIA's operator would end"
    await NvidiaOperator(program, NAMESPACE).take(policy)

    log, argv = logging.getLogger("cleanup"), ["--kubeconfig", str(tmp_path / "nvidia.yaml"), "--namespace", NAMESPACE]
    assert await cleanup.run(argv, {}, root=tmp_path, log=log, stop=asyncio.Event()) == 0

    found = await cluster.get(*DAEMONSET)
    assert [container["name"] for container in found["spec"]["template"]["spec"]["containers"]] == [
        "nvidia-device-plugin", "config-manager",
    ]  # fmt: skip
    assert PLUGIN not in await labels_of(cluster)
    assert await NvidiaOperator(program, NAMESPACE).label_nodes() == 1
