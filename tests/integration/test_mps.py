"""MPS in a simulated cluster: a label brings it, another one takes it away, and people read why it takes a moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.manifests import Kind
from gpushare.sandbox.app import Options, Sandbox
from support.snapshots import by_mps, time_slicing

EXAMPLE = Path(__file__).parents[2] / "examples/07-mps/mps-config.yaml"
NAMESPACE = "gpu-operator"
POLICY = "cluster-policy"
MAP = "sharing"
DAEMONS = f"app={names.DAEMONSET_MPS}"
PATIENCE = 120.0
UNSHARED = {"replicas": "1", "strategy": "none", "capable": "false"}


class Cluster:
    """A sandbox, and what is asked of it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self.api = sandbox.cluster

    async def configure(self, **texts: str) -> None:
        """Makes a ConfigMap, and the policy follow it."""
        metadata = {"name": MAP, "namespace": NAMESPACE}
        await self.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": texts})
        config = {"devicePlugin": {"config": {"name": MAP}}}
        await self.api.patch(manifests.CLUSTER_POLICY, POLICY, {"spec": config})

    async def label(self, node: str, config: str | None) -> None:
        await self.api.patch(manifests.NODE, node, {"metadata": {"labels": {names.LABEL_CONFIG: config}}})

    async def get(self, kind: Kind, name: str, namespace: str = "") -> dict[str, Any]:
        return await self.api.get(kind, name, namespace) or {}

    async def allocatable(self, node: str) -> str:
        found = await self.get(manifests.NODE, node)
        return str(found["status"]["allocatable"].get(names.RESOURCE_GPU))

    async def labels(self, node: str) -> dict[str, str]:
        labels = (await self.get(manifests.NODE, node))["metadata"]["labels"]
        keys = {"replicas": "gpu.replicas", "strategy": "gpu.sharing-strategy", "capable": "mps.capable"}
        return {ours: labels[names.PREFIX + theirs] for ours, theirs in keys.items()}

    async def product(self, node: str) -> str:
        return str((await self.get(manifests.NODE, node))["metadata"]["labels"][names.LABEL_PRODUCT])

    async def conditions(self, node: str) -> dict[str, tuple[str, str]]:
        found = (await self.get(manifests.GPU_NODE, node))["status"]["conditions"]
        return {condition["type"]: (condition["status"], condition["message"]) for condition in found}

    async def policy(self) -> tuple[str, str]:
        """State, and what the policy complains about."""
        status = (await self.get(manifests.CLUSTER_POLICY, POLICY))["status"]
        return status["state"], next(c["message"] for c in status["conditions"] if c["type"] == "Error")

    async def daemon_pods(self) -> list[dict[str, Any]]:
        return list((await self.api.list(manifests.POD, NAMESPACE, labels=DAEMONS)).items)

    async def until(self, ask: Callable[[], Any], expected: Any) -> None:
        """Waits until a question has this answer."""
        answer = None
        try:
            async with asyncio.timeout(PATIENCE):
                while (answer := await ask()) != expected:  # noqa: ASYNC110 - many kinds are asked
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"{answer!r} instead of {expected!r}") from None


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with Sandbox(Options(nodes=2)) as sandbox:
        await sandbox.ready()
        made = Cluster(sandbox)
        example = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
        await made.configure(**example["data"], halves=by_mps(2), eighths=time_slicing(8), many=by_mps(49))
        yield made


@pytest.mark.timeout(400)
async def test_there_and_back(cluster: Cluster) -> None:
    """To MPS, to other shares, to time slicing, to none: list, labels, product and policy follow; the other node does not."""
    await cluster.label("gpu01", "mps")
    await cluster.until(lambda: cluster.allocatable("gpu01"), "16")
    await cluster.until(lambda: cluster.labels("gpu01"), {"replicas": "4", "strategy": "mps", "capable": "true"})
    assert (await cluster.product("gpu01")).endswith(names.SUFFIX_SHARED)
    await cluster.until(cluster.policy, ("ready", ""))
    assert (await cluster.conditions("gpu01"))["MpsReady"] == ("True", "MPS daemons run for nvidia.com/gpu")
    (pod,) = await cluster.daemon_pods()
    assert (pod["spec"]["nodeName"], pod["status"]["containerStatuses"][0]["ready"]) == ("gpu01", True)

    await cluster.label("gpu01", "halves")
    await cluster.until(lambda: cluster.allocatable("gpu01"), "8")
    assert [each["metadata"]["uid"] for each in await cluster.daemon_pods()] == [pod["metadata"]["uid"]]

    await cluster.label("gpu01", "eighths")
    await cluster.until(lambda: cluster.allocatable("gpu01"), "32")
    await cluster.until(
        lambda: cluster.labels("gpu01"), {"replicas": "8", "strategy": "time-slicing", "capable": "false"}
    )
    await cluster.until(cluster.daemon_pods, [])
    await cluster.until(lambda: cluster.get(manifests.DAEMON_SET, names.DAEMONSET_MPS, NAMESPACE), {})
    assert "MpsReady" not in await cluster.conditions("gpu01")

    await cluster.label("gpu01", None)
    await cluster.until(lambda: cluster.allocatable("gpu01"), "4")
    await cluster.until(lambda: cluster.labels("gpu01"), UNSHARED)
    assert not (await cluster.product("gpu01")).endswith(names.SUFFIX_SHARED)
    await cluster.until(cluster.policy, ("ready", ""))
    assert (await cluster.allocatable("gpu02"), await cluster.labels("gpu02")) == ("4", UNSHARED)


async def test_more_clients_than_a_gpu_takes(cluster: Cluster) -> None:
    """Refused before anything is touched, with the figure."""
    await cluster.label("gpu01", "mps")
    await cluster.until(lambda: cluster.allocatable("gpu01"), "16")
    (pod,) = await cluster.daemon_pods()

    await cluster.label("gpu01", "many")

    async def refusal() -> bool:
        status, message = (await cluster.conditions("gpu01"))["ConfigApplied"]
        return status == "False" and "takes 48 MPS clients at most" in message

    await cluster.until(refusal, expected=True)
    assert await cluster.allocatable("gpu01") == "16"
    assert [each["metadata"]["uid"] for each in await cluster.daemon_pods()] == [pod["metadata"]["uid"]]


async def test_no_daemon(cluster: Cluster) -> None:
    """A node whose daemons may not run offers nothing of MPS, and GPUNode and policy say why; the other node goes on."""
    await cluster.api.patch(
        manifests.NODE, "gpu01", {"spec": {"taints": [{"key": "no-daemons", "effect": "NoSchedule"}]}}
    )
    await cluster.label("gpu01", "mps")

    async def reason() -> bool:
        status, message = (await cluster.conditions("gpu01")).get("MpsReady", ("", ""))
        return status == "False" and message.startswith(
            "the shares of nvidia.com/gpu are not offered: its MPS daemon does not run: "
        )

    await cluster.until(reason, expected=True)
    await cluster.until(lambda: cluster.allocatable("gpu01"), "0")

    async def complaint() -> bool:
        state, message = await cluster.policy()
        return state == "notReady" and "waiting for gpu01 (the shares of nvidia.com/gpu are not offered" in message

    await cluster.until(complaint, expected=True)
    assert await cluster.allocatable("gpu02") == "4"

    await cluster.api.patch(manifests.NODE, "gpu01", {"spec": {"taints": None}})
    await cluster.until(lambda: cluster.allocatable("gpu01"), "16")
