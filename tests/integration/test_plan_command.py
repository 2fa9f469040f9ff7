"""`gpushare plan` beside a sandbox, both as processes: what it says is what then happens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.kube.credentials import from_kubeconfig
from gpushare.kube.lean import LeanCluster
from support import commands

PATIENCE = 120.0
NAMESPACE = "gpu-operator"
POLICY = "cluster-policy"
SLICED = "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: %d}]}}"
RENAMED = "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, rename: nvidia.com/few, replicas: 3}]}}"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "user", "namespace": "default"},
    "spec": {"containers": [{"name": "c", "image": "cuda", "resources": {"limits": {names.RESOURCE_GPU: "7"}}}]},
}


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[LeanCluster]:
    """A client of a sandbox with the two GPU nodes of the walk-through, whose agents have told of them."""
    kubeconfig = tmp_path / "kubeconfig"
    with commands.sandbox(kubeconfig):
        client = LeanCluster(from_kubeconfig(kubeconfig))
        await until(client, lambda seen: seen["gpu01"].get("nvidia.com/gpu") == "4" and len(seen) == 2)
        yield client
        await client.close()


async def capacities(cluster: LeanCluster) -> dict[str, dict[str, str]]:
    nodes = (await cluster.list(manifests.NODE)).items
    found = {
        node["metadata"]["name"]: {
            key: value for key, value in node["status"]["capacity"].items() if key.startswith("nvidia.com/")
        }
        for node in nodes
    }
    return {name: resources for name, resources in found.items() if resources}


async def until(cluster: LeanCluster, is_so: Any) -> None:
    """Waits until the capacities of the nodes are as wanted."""
    async with asyncio.timeout(PATIENCE):
        while not (seen := await capacities(cluster)).get("gpu01") or not is_so(seen):  # noqa: ASYNC110 - as people look
            await asyncio.sleep(0.1)


async def labels_of(cluster: LeanCluster, node: str) -> dict[str, str]:
    found = await cluster.get(manifests.NODE, node) or {}
    return dict(found["metadata"]["labels"])


def change(tmp_path: Path, **keys: str) -> tuple[Path, list[Manifest]]:
    """A file with a ConfigMap of these keys, and the policy that names it."""
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "sharing", "namespace": NAMESPACE},
        "data": keys,
    }
    policy = {
        "apiVersion": "nvidia.com/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": POLICY},
        "spec": {"devicePlugin": {"config": {"name": "sharing", "default": "all"}}},
    }
    file = tmp_path / "change.yaml"
    file.write_text(yaml.safe_dump_all([config_map, policy]))
    return file, [config_map, policy]


async def planned(tmp_path: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """What the command says; by a thread, since the test's client lives in the loop."""
    words = ("plan", "--kubeconfig", str(tmp_path / "kubeconfig"), "-o", "json", *words)
    ran = await asyncio.to_thread(commands.run, *words)
    return ran.returncode, json.loads(ran.stdout)


async def test_what_is_planned_happens(cluster: LeanCluster, tmp_path: Path) -> None:
    """Capacity and labels of every node, after a new default and another key by a label."""
    file, objects = change(tmp_path, all=SLICED % 4, few=RENAMED)
    before = {name: await labels_of(cluster, name) for name in ("gpu01", "gpu02")}
    code, plan = await planned(tmp_path, "-f", str(file), "--label", "gpu02", f"{names.LABEL_CONFIG}=few")
    assert code == 0, plan
    assert await capacities(cluster) == {
        node["name"]: {key: str(value) for key, value in node["resources"]["before"].items()} for node in plan["nodes"]
    }

    for manifest in objects:
        await cluster.apply(manifest, manager="kubectl", force=True)
    await cluster.patch(manifests.NODE, "gpu02", {"metadata": {"labels": {names.LABEL_CONFIG: "few"}}})

    wanted = {
        node["name"]: {key: str(value) for key, value in node["resources"]["after"].items()} for node in plan["nodes"]
    }
    assert wanted["gpu01"] == {"nvidia.com/gpu": "16"}
    await until(cluster, lambda seen: seen == wanted)
    for node in plan["nodes"]:
        expected = before[node["name"]] | {key: both["after"] for key, both in node["labels"].items()}
        expected = {key: value for key, value in expected.items() if value is not None}
        async with asyncio.timeout(PATIENCE):
            while await labels_of(cluster, node["name"]) != expected:  # noqa: ASYNC110 - as people look
                await asyncio.sleep(0.1)
    code, again = await planned(tmp_path, "-f", str(file))
    assert code == 0
    assert not any(node["labels"] for node in again["nodes"])


async def test_refused_and_over_the_limit(cluster: LeanCluster, tmp_path: Path) -> None:
    """A broken key leaves nodes as they are and gives 1; fewer shares than are in use name the pods."""
    _, objects = change(tmp_path, all=SLICED % 4)
    for manifest in objects:
        await cluster.apply(manifest, manager="kubectl", force=True)
    await until(cluster, lambda seen: seen["gpu01"] == {"nvidia.com/gpu": "16"})
    await cluster.create({**POD, "spec": {**POD["spec"], "nodeName": "gpu01"}})  # type: ignore[dict-item]
    async with asyncio.timeout(PATIENCE):
        while not ((await cluster.get(manifests.GPU_NODE, "gpu01")) or {})["status"].get("allocations"):  # noqa: ASYNC110
            await asyncio.sleep(0.1)

    code, plan = await planned(tmp_path, "-f", str(change(tmp_path, all="version: v1")[0]))
    (gpu01,) = (node for node in plan["nodes"] if node["name"] == "gpu01")
    assert (code, gpu01["overLimit"]) == (
        0,
        [{"resource": "nvidia.com/gpu", "inUse": 7, "offered": 4, "pods": ["default/user"]}],
    )

    code, plan = await planned(tmp_path, "-f", str(change(tmp_path, all="sharing: {timeSlice: {}}")[0]))
    (gpu01,) = (node for node in plan["nodes"] if node["name"] == "gpu01")
    assert (code, gpu01["resources"]["after"]) == (1, {"nvidia.com/gpu": 16})
    assert gpu01["refusals"][0].startswith('gpu01 keeps "all" (revision ')
    assert gpu01["labels"] == {}
