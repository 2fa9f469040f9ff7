"""What only a real API server and a real node say of the chart: admission, hooks, and that an upgrade disturbs nobody."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gpushare import names
from gpushare.domain import manifests
from gpushare.errors import ClusterRefused
from gpushare.kube.credentials import from_kubeconfig
from gpushare.kube.lean import LeanCluster
from support import helm
from support.real_cluster.gpu_node import NAMESPACE, NODE, GpuNode
from support.real_cluster.kubectl import until
from support.snapshots import time_slicing

AGENTS = f"app={names.DAEMONSET_DEVICE_PLUGIN}"
OTHER = "gpu02"
"""A Node that nobody runs."""
BROKEN = f"""
apiVersion: v1
kind: ConfigMap
metadata: {{name: broken, namespace: {NAMESPACE}, labels: {{{names.LABEL_SHARING_CONFIG}: "true"}}}}
data:
  any: |
""" + "".join(f"    {line}\n" for line in time_slicing(4).replace("replicas", "replica").splitlines())


@pytest.fixture
def other_gpunode(node: GpuNode) -> Iterator[str]:
    """Name of a second Node and of its GPUNode."""
    node.kubectl.apply(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": OTHER, "labels": {names.LABELS_NFD_GPU[0]: "true"}}}
    )
    until("its GPUNode is there", lambda: node.kubectl.answers("get", "gpunode", OTHER))
    yield OTHER
    node.kubectl("delete", "node", OTHER)
    until("its GPUNode is gone", lambda: not node.kubectl.answers("get", "gpunode", OTHER))


async def test_agents_write_their_own_gpunode(node: GpuNode, other_gpunode: str) -> None:
    """The token of an agent's pod opens one GPUNode, and a token without a pod none."""
    account = ("-n", NAMESPACE, names.SERVICE_ACCOUNT_DEVICE_PLUGIN)
    [pod] = node.kubectl.items("pods", "-n", NAMESPACE, f"--field-selector=spec.nodeName={NODE}", "-l", AGENTS)
    bound = ("--bound-object-kind=Pod", f"--bound-object-name={pod['metadata']['name']}")
    of_pod = node.kubectl("create", "token", *account, *bound)
    of_nobody = node.kubectl("create", "token", *account)

    assert f"may write its own GPUNode only, not {other_gpunode}" in await refusal_of(node, of_pod, other_gpunode)
    assert "this token of an agent names no node" in await refusal_of(node, of_nobody, NODE)
    assert await refusal_of(node, of_pod, NODE) == ""


async def refusal_of(node: GpuNode, token: str, name: str) -> str:
    """Why the status of a GPUNode may not be written; empty: it may."""
    admin = from_kubeconfig(node.cluster.kubeconfig())
    cluster = LeanCluster(replace(admin, token=token, client_certificate="", client_key=""))
    try:
        assert await cluster.patch(manifests.GPU_NODE, name, {"status": {"problems": []}}, subresource="status")
    except ClusterRefused as refused:
        return str(refused)
    finally:
        await cluster.close()
    return ""


def test_other_chart_restarts_nothing(node: GpuNode, tmp_path: Path) -> None:
    """Another version of the chart runs its hook, and leaves every pod alone."""
    before = pods_of(node)

    node.upgrade(chart=helm.copy_chart(tmp_path, version="0.2.0"))

    assert pods_of(node) == before
    assert not node.kubectl.items("jobs", "-n", NAMESPACE)


def pods_of(node: GpuNode) -> dict[str, tuple[str, int]]:
    """Uid and restarts of the pods on the node."""
    pods = node.kubectl.items("pods", "-n", NAMESPACE, f"--field-selector=spec.nodeName={NODE}")
    return {
        pod["metadata"]["name"]: (
            pod["metadata"]["uid"],
            sum(each["restartCount"] for each in pod["status"].get("containerStatuses", ())),
        )
        for pod in pods
    }


def test_broken_configuration_is_refused(node: GpuNode) -> None:
    """The webhook answers through its Service, with a certificate that the API server believes."""
    try:
        node.upgrade("--set", "configWebhook.enabled=true")

        def refusal() -> str:
            return node.kubectl.run("apply", "--dry-run=server", "-f", "-", text=BROKEN).stderr

        # Until it has made its certificate, everything is let through.
        until("it refuses", refusal)
        assert 'admission webhook "configs.gpushare.dev" denied the request' in refusal()
        assert 'unknown key; did you mean "replicas"?' in refusal()
    finally:
        node.upgrade("--set", "configWebhook.enabled=false")
    assert not node.kubectl.items("secrets", "-n", NAMESPACE, "-l", names.LABEL_CERTIFICATE)
