"""The agent from a static manifest: no operator, no kinds of ours, no rights; one ConfigMap for all nodes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml

from gpushare import data, names
from gpushare.domain import manifests
from gpushare.sandbox.app import Options, Sandbox
from gpushare.sandbox.tour import engine

EXAMPLE = data.path_of("examples") / "06-without-the-operator"
NAMESPACE = "kube-system"
NODE = "gpu01"
PATIENCE = 120.0


class Cluster:
    """A sandbox to which nobody has installed the operator."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.api = sandbox.cluster
        self._kubeconfig = sandbox.kubeconfig

    async def kubectl(self, *words: str) -> str:
        command = (str(engine.find_kubectl()), "--kubeconfig", str(self._kubeconfig), *words)
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        output, _ = await process.communicate()
        assert process.returncode == 0
        return output.decode()

    async def amount(self, part: str) -> str | None:
        node = await self.api.get(manifests.NODE, NODE)
        assert node is not None
        found: dict[str, str] = node["status"].get(part) or {}
        return found.get(names.RESOURCE_GPU)

    async def until_allocatable(self, expected: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while await self.amount("allocatable") != expected:  # noqa: ASYNC110 - as a person would
                await asyncio.sleep(0.05)

    async def configure(self, text: str) -> None:
        await self.api.patch(manifests.CONFIG_MAP, "gpu-sharing-config", {"data": {"config.yaml": text}}, NAMESPACE)

    async def until_logged(self, text: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while text not in await self.kubectl(  # noqa: ASYNC110 - as a person would
                "logs", "-n", NAMESPACE, "-l", "app=gpu-sharing-agent"
            ):
                await asyncio.sleep(0.2)

    async def pod(self) -> dict[str, Any]:
        pods = (await self.api.list(manifests.POD, NAMESPACE, labels="app=gpu-sharing-agent")).items
        return next(iter(pods), {})


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with Sandbox(Options(nodes=1, has_operator=False)) as sandbox:
        assert sandbox.fleet is not None
        await sandbox.fleet.ready()
        yield Cluster(sandbox)


async def test_one_manifest_and_one_configuration(cluster: Cluster) -> None:
    """Shares appear; an edited configuration takes effect without a restart; a broken one changes nothing."""
    await cluster.kubectl("label", "node", NODE, f"{names.LABEL_PRESENT}=true", "--overwrite")
    await cluster.kubectl(
        "create", "-f", str(EXAMPLE / "gpu-sharing-config.yaml"), "-f", str(EXAMPLE / "gpu-sharing-agent.yaml")
    )
    await cluster.until_allocatable("16")
    uid = (await cluster.pod())["metadata"]["uid"]
    text = yaml.safe_load((EXAMPLE / "gpu-sharing-config.yaml").read_text())["data"]["config.yaml"]
    await cluster.configure(text.replace("replicas: 4", "replicas: 2"))
    await cluster.until_allocatable("8")
    await cluster.configure(text.replace("replicas: 4", "replica: 4"))
    await cluster.until_logged("configuration refused")
    assert await cluster.amount("allocatable") == "8"
    await cluster.configure(text)
    await cluster.until_allocatable("16")
    pod = await cluster.pod()

    assert pod["metadata"]["uid"] == uid
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
