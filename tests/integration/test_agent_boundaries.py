"""What an agent may write: the status of its own GPUNode, and of no other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.errors import ClusterRefused
from gpushare.kube.credentials import Credentials, from_kubeconfig
from gpushare.kube.lean import LeanCluster
from gpushare.sandbox.app import Options, Sandbox

NAMESPACE = "gpu-operator"
STATUS = {"status": {"driverVersion": "0.0.0"}}
ACCOUNT = names.SERVICE_ACCOUNT_DEVICE_PLUGIN


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(Options(nodes=2)) as sandbox:
        await sandbox.ready()
        yield sandbox


async def write(sandbox: Sandbox, token: str, node: str) -> str:
    """Writes the status of a GPUNode; says why that is forbidden, or nothing."""
    credentials: Credentials = replace(from_kubeconfig(sandbox.kubeconfig), token=token)
    cluster = LeanCluster(credentials)
    try:
        assert await cluster.patch(manifests.GPU_NODE, node, STATUS, subresource="status")
    except ClusterRefused as refused:
        return f"{refused.code} {refused}"
    finally:
        await cluster.close()
    return ""


async def token_of(sandbox: Sandbox, pod: Manifest | None) -> str:
    """A token of the agents' account: as a pod of it has, or as anybody gets who may create one."""
    bound = {}
    if pod is not None:
        about = {"name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        bound = {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", **about}}
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "metadata": {"namespace": NAMESPACE},
        "spec": {"audiences": [], **bound},
    }
    return str((await sandbox.cluster.create(request, subresource="token", name=ACCOUNT))["status"]["token"])


async def agent_on(sandbox: Sandbox, node: str) -> Manifest:
    pods = await sandbox.cluster.list(manifests.POD, NAMESPACE, labels=f"app={names.DAEMONSET_DEVICE_PLUGIN}")
    [pod] = [each for each in pods.items if each["spec"]["nodeName"] == node]
    return pod


async def test_own_node_only(sandbox: Sandbox) -> None:
    """Whoever breaks out on one node, and finds the agent's token there, can tell no lies about the others."""
    token = await token_of(sandbox, await agent_on(sandbox, "gpu01"))

    assert await write(sandbox, token, "gpu01") == ""
    said = await write(sandbox, token, "gpu02")
    assert said.startswith("403 ")
    assert "the agent of node gpu01 may write its own GPUNode only, not gpu02" in said


async def test_token_of_no_node(sandbox: Sandbox) -> None:
    """A token that was made by hand for the account writes nothing anywhere."""
    token = await token_of(sandbox, None)

    assert "this token of an agent names no node" in await write(sandbox, token, "gpu01")


async def test_others_are_not_meant(sandbox: Sandbox) -> None:
    """Administrators, and the controller, write what their roles let them write."""
    assert await sandbox.cluster.patch(manifests.GPU_NODE, "gpu02", {"metadata": {"labels": {"a": "b"}}})
