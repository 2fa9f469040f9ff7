"""`cdi.enabled` of a policy, in a simulated cluster: from the patch to what a container runtime does."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gpushare import names
from gpushare.domain import manifests
from gpushare.sandbox.app import Options, Sandbox

PATIENCE = 120.0
NAMESPACE = "gpu-operator"


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(Options(nodes=1)) as running:
        await running.ready()
        yield running


async def until_rolled_out(sandbox: Sandbox, strategy: str) -> None:
    """Waits until the node's agent is one of this strategy, and ready."""

    async def is_so() -> bool:
        labels = f"app={names.DAEMONSET_DEVICE_PLUGIN}"
        pods = (await sandbox.cluster.list(manifests.POD, NAMESPACE, labels=labels)).items
        return (
            len(pods) == 1 and {"name": "DEVICE_LIST_STRATEGY", "value": strategy} in env_of(pods[0]) and ready(pods[0])
        )

    async with asyncio.timeout(PATIENCE):
        while not await is_so():  # noqa: ASYNC110 - as a person would look
            await asyncio.sleep(0.05)


def env_of(pod: dict[str, Any]) -> list[dict[str, str]]:
    return list(pod["spec"]["containers"][0]["env"])


def ready(pod: dict[str, Any]) -> bool:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return bool(statuses) and all(status["ready"] for status in statuses)


async def phase_of(sandbox: Sandbox, name: str) -> str:
    pod = await sandbox.cluster.get(manifests.POD, name, "default") or {}
    return str(pod["status"].get("phase"))


async def log_of(sandbox: Sandbox, name: str) -> list[str]:
    """Runs a pod with one GPU to its end, and returns what it printed."""
    limits = {"limits": {names.RESOURCE_GPU: "1"}}
    container = {"name": "c", "image": "cuda-sample:vectoradd", "resources": limits}
    spec = {"restartPolicy": "Never", "containers": [container]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}
    await sandbox.cluster.create(pod)
    async with asyncio.timeout(PATIENCE):
        while await phase_of(sandbox, name) != "Succeeded":  # noqa: ASYNC110 - as a person would look
            await asyncio.sleep(0.05)
    assert sandbox.fleet is not None
    worker = sandbox.fleet.nodes["gpu01"].find("default", name)
    assert worker is not None
    return [line.text.removeprefix("sandbox: ") for line in worker.output_of("c", previous=False).lines()]


async def test_there_and_back(sandbox: Sandbox) -> None:
    """A pod gets its GPU by CDI as soon as the policy says so, and by its variable again when it says no."""
    assert any(line.startswith("env NVIDIA_VISIBLE_DEVICES=GPU-") for line in await log_of(sandbox, "before"))

    await sandbox.cluster.patch(manifests.CLUSTER_POLICY, "cluster-policy", {"spec": {"cdi": {"enabled": True}}})
    await until_rolled_out(sandbox, "cdi-annotations,cdi-cri")
    lines = await log_of(sandbox, "by-cdi")

    assert not any(line.startswith("env ") for line in lines)
    (device,) = [line.removeprefix("CDI device ") for line in lines if line.startswith("CDI device ")]
    assert device.startswith("k8s.device-plugin.nvidia.com/gpu=GPU-")
    assert any(line.startswith("annotation cdi.k8s.io/") and line.endswith(f"={device}") for line in lines)
    assert "by CDI device /dev/nvidiactl" in lines
    assert sum(re.fullmatch(r"by CDI device /dev/nvidia\d", line) is not None for line in lines) == 1
    assert "by CDI mount /usr/lib/x86_64-linux-gnu/libcuda.so.550.90.07" in lines
    assert lines[-2:] == ["Test PASSED", "Done"]
    node = await sandbox.cluster.get(manifests.GPU_NODE, "gpu01") or {}
    assert node["status"]["problems"] == []

    await sandbox.cluster.patch(manifests.CLUSTER_POLICY, "cluster-policy", {"spec": {"cdi": {"enabled": False}}})
    await until_rolled_out(sandbox, "envvar")
    assert any(line.startswith("env NVIDIA_VISIBLE_DEVICES=GPU-") for line in await log_of(sandbox, "after"))
