"""What anybody expects who knows NVIDIA's operator, by what stands in the API server: fifteen cases, and the sharing scenario."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.gpunode import AGENT_READY
from gpushare.domain.manifests import Manifest
from gpushare.kube.cluster import PatchType
from gpushare.sandbox.app import Options, Sandbox
from support.clusters import IMAGE, NAMESPACE, POLICY, REQUIRED, GpuCluster
from support.snapshots import time_slicing

GRACE = "--discovery-grace-seconds=0"
SHARED = {"devicePlugin": {"config": {"name": "sharing", "default": "any"}}}
COMPONENTS = (
    "driver", "gpu-feature-discovery", "container-toolkit", "device-plugin", "dcgm", "dcgm-exporter", "node-status-exporter",
    "operator-validator", "client",
)  # fmt: skip
ACCOUNT = names.SERVICE_ACCOUNT_DEVICE_PLUGIN
INVENTORY = (
    (manifests.DAEMON_SET, names.DAEMONSET_DEVICE_PLUGIN, NAMESPACE),
    (manifests.SERVICE_ACCOUNT, ACCOUNT, NAMESPACE),
    (manifests.ROLE, ACCOUNT, NAMESPACE),
    (manifests.ROLE_BINDING, ACCOUNT, NAMESPACE),
    (manifests.CLUSTER_ROLE, names.CLUSTER_ROLE_AGENT, ""),
    (manifests.CLUSTER_ROLE_BINDING, names.CLUSTER_ROLE_AGENT, ""),
    (manifests.SERVICE, names.SERVICE_DEVICE_PLUGIN, NAMESPACE),
    (manifests.RUNTIME_CLASS, "nvidia", ""),
)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[GpuCluster]:
    """A controller, and nothing for it to do yet."""
    async with GpuCluster.running(tmp_path) as cluster, cluster.controller(GRACE):
        yield cluster


async def labels_of(cluster: GpuCluster, node: str) -> dict[str, str]:
    labels = (await cluster.get(manifests.NODE, node))["metadata"]["labels"]
    return {key.removeprefix(names.PREFIX): value for key, value in labels.items() if key.startswith(names.PREFIX)}


async def until_labels(cluster: GpuCluster, node: str, expected: dict[str, str]) -> None:
    async def holds() -> bool:
        assert await labels_of(cluster, node) == expected
        return True

    await cluster.until(f"labels of {node}", holds)


def deployed(*components: str) -> dict[str, str]:
    return {"gpu.present": "true", **{f"gpu.deploy.{component}": "true" for component in components}}


async def template_of(cluster: GpuCluster) -> tuple[int, Any]:
    found = await cluster.until("DaemonSet", lambda: cluster.admin.get(*INVENTORY[0]))
    return found["metadata"]["generation"], found["spec"]["template"]


async def test_01_nine_empty_objects(cluster: GpuCluster) -> None:
    """The smallest policy brings every object, with the image of the operator."""
    await cluster.apply_policy()

    for key in INVENTORY:
        await cluster.until(f"{key[1]} is there", lambda key=key: cluster.admin.get(*key))
    _, template = await template_of(cluster)
    assert {container["image"] for container in template["spec"]["containers"]} == {IMAGE}


async def test_02_policy_of_the_field(cluster: GpuCluster) -> None:
    """Another name, dead fields, nulls and empty objects; without node feature discovery it is ready, and says so."""
    spec = {"cdi": {}, "psp": {"enabled": False}, "validator": {"plugin": None}, "gds": {"enabled": False}, "mig": {}}
    await cluster.apply_policy("gpu-cluster-policy", **spec)

    await cluster.until_condition("Ready", "False", name="gpu-cluster-policy")
    await cluster.roll_out(0)
    ready = await cluster.until_condition("Ready", "True", name="gpu-cluster-policy")
    assert (ready["reason"], ready["message"]) == ("NFDLabelsMissing", "No NFD labels found")


async def test_03_a_node_with_one_label(cluster: GpuCluster) -> None:
    """One label of discovery is enough, and a GPU that can be divided gets the MIG manager and its first layout."""
    await cluster.apply_policy(migManager={"enabled": True, "config": {"default": "all-disabled"}})
    await cluster.add_node("gpu01")
    await until_labels(cluster, "gpu01", deployed(*COMPONENTS))

    await cluster.label("gpu01", **{"mig.capable": "true"})
    divided = {"mig.capable": "true", "mig.config": "all-disabled"}
    await until_labels(cluster, "gpu01", deployed(*COMPONENTS, "mig-manager") | divided)


async def test_04_discovery_changes_its_mind(cluster: GpuCluster) -> None:
    """What a person keeps away stays away while the GPU is there; when it is gone, so are the labels."""
    await cluster.apply_policy()
    await cluster.add_node("gpu01", **{"nvidia.com/gpu.deploy.device-plugin": "false"})
    expected = deployed(*COMPONENTS) | {"gpu.deploy.device-plugin": "false"}
    await until_labels(cluster, "gpu01", expected)

    gone = {"metadata": {"labels": {names.LABELS_NFD_GPU[0]: None}}}
    await cluster.admin.patch(manifests.NODE, "gpu01", gone)
    await until_labels(cluster, "gpu01", {"gpu.present": "false", "gpu.deploy.device-plugin": "false"})


async def test_05_operands_off(cluster: GpuCluster) -> None:
    """One label takes all components from a node, and gives them back."""
    await cluster.apply_policy()
    await cluster.add_node("gpu01", **{names.LABEL_DEPLOY_OPERANDS: "false"})
    await until_labels(cluster, "gpu01", {"gpu.present": "true", "gpu.deploy.operands": "false"})

    await cluster.label("gpu01", **{"gpu.deploy.operands": None})
    await until_labels(cluster, "gpu01", deployed(*COMPONENTS))


async def test_06_switches(cluster: GpuCluster) -> None:
    """`enabled: false` takes everything of a component away, and true brings it back."""
    await cluster.apply_policy()
    await template_of(cluster)
    for enabled in (False, True):
        await cluster.patch_policy({"devicePlugin": {"enabled": enabled}})
        for key in INVENTORY:

            async def is_so(key: Any = key, enabled: bool = enabled) -> bool:
                return (await cluster.admin.get(*key) is not None) is enabled

            await cluster.until(f"{key[1]}: {enabled}", is_so)


async def test_07_configuration_comes_and_goes(cluster: GpuCluster) -> None:
    """It reaches the node and changes no pod."""
    await cluster.apply_policy()
    await cluster.add_node("gpu01")
    await cluster.apply_config("sharing", any=time_slicing(4))
    await cluster.until_config("gpu01", reason="none")
    before = await template_of(cluster)

    await cluster.patch_policy(SHARED)
    await cluster.until_config("gpu01", reason="default", content=time_slicing(4))
    await cluster.patch_policy({"devicePlugin": {"config": None}})
    await cluster.until_config("gpu01", reason="none", content="")
    assert await template_of(cluster) == before


async def test_08_two_policies(cluster: GpuCluster) -> None:
    """Only the oldest acts; when it goes, the other one does."""
    await cluster.apply_policy()
    await cluster.until_condition("Ready", "False")
    await asyncio.sleep(1.1)  # ages are counted in seconds
    await cluster.apply_policy("a-second", daemonsets={"labels": {"team": "second"}})

    async def state() -> str:
        return str((await cluster.get(manifests.CLUSTER_POLICY, "a-second")).get("status", {}).get("state"))

    async def is_ignored() -> bool:
        return await state() == "ignored"

    async def took_over() -> bool:
        _, template = await template_of(cluster)
        return template["metadata"]["labels"].get("team") == "second" and await state() == "notReady"

    await cluster.until("the second is ignored", is_ignored)
    await cluster.admin.delete(manifests.CLUSTER_POLICY, POLICY)
    await cluster.until("the second acts", took_over)


@pytest.mark.timeout(400)
async def test_08_a_successor_without_a_spec() -> None:
    """The agents went with the policy that owned them: policy and node say so, and with a spec they come back."""
    async with Sandbox(Options(nodes=1)) as sandbox:
        await sandbox.ready()
        cluster = sandbox.cluster
        body = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "successor"}}
        await cluster.create({**body, "spec": None})
        await cluster.delete(manifests.CLUSTER_POLICY, POLICY)

        await until_told(sandbox, manifests.GPU_NODE, "gpu01", AGENT_READY, "False")
        gone = f"DaemonSet {NAMESPACE}/{names.DAEMONSET_DEVICE_PLUGIN} is gone, and no agent runs"
        await until_told(sandbox, manifests.CLUSTER_POLICY, "successor", "Error", "True", saying=gone)

        await cluster.patch(manifests.CLUSTER_POLICY, "successor", {"spec": {key: {} for key in REQUIRED}})
        await until_told(sandbox, manifests.GPU_NODE, "gpu01", AGENT_READY, "True")


async def until_told(
    sandbox: Sandbox, kind: manifests.Kind, name: str, condition: str, status: str, *, saying: str = ""
) -> None:
    async with asyncio.timeout(120):
        while True:
            found = await sandbox.cluster.get(kind, name) or {}
            for told in found.get("status", {}).get("conditions", ()):
                if (told["type"], told["status"]) == (condition, status) and saying in told["message"]:
                    return
            await asyncio.sleep(0.1)


async def test_09_half_an_image(cluster: GpuCluster) -> None:
    """An error that names the component, and what runs stays."""
    await cluster.apply_policy()
    before = await template_of(cluster)

    await cluster.patch_policy({"devicePlugin": {"image": "k8s-device-plugin"}, "mig": {"strategy": "single"}})
    await cluster.patch_policy({"devicePlugin": {"version": "v1"}})
    error = await cluster.until_condition("Error", "True", saying="spec.devicePlugin: invalid image specification")
    assert error["reason"] == "ReconcileFailed"
    assert await template_of(cluster) == before


async def test_10_readiness(cluster: GpuCluster) -> None:
    """Not ready names the state; ready is ready."""
    await cluster.apply_policy()
    await cluster.add_node("gpu01")
    error = await cluster.until_condition("Error", "True", saying="states not ready: [state-device-plugin]")
    assert error["reason"] == "OperandNotReady"

    await cluster.until_config("gpu01")
    await cluster.roll_out()
    await cluster.run_agent("gpu01")
    ready = await cluster.until_condition("Ready", "True")
    assert ready["reason"] == "Reconciled"
    assert (
        ready["observedGeneration"] == (await cluster.get(manifests.CLUSTER_POLICY, POLICY))["metadata"]["generation"]
    )


async def test_11_templates_are_stable(tmp_path: Path) -> None:
    """Neither another operator nor another release of a chart changes what pods are made of."""
    async with GpuCluster.running(tmp_path) as cluster:
        async with cluster.controller():
            await cluster.apply_policy(daemonsets={"labels": {"helm.sh/chart": "v1"}})
            _, before = await template_of(cluster)
        async with cluster.controller(identity="another"):
            await cluster.patch_policy({"daemonsets": {"labels": {"helm.sh/chart": "v2"}}})

            async def is_labelled() -> bool:
                return (await cluster.get(*INVENTORY[0]))["metadata"]["labels"]["helm.sh/chart"] == "v2"

            await cluster.until("the label is on the DaemonSet", is_labelled)
            assert (await template_of(cluster))[1] == before


async def test_12_an_edited_configuration(cluster: GpuCluster) -> None:
    """A good one is one write a node; a bad one is none, and told."""
    await cluster.apply_config("sharing", any=time_slicing(4))
    await cluster.apply_policy(**SHARED)
    await cluster.add_node("gpu01")
    await cluster.until_config("gpu01", content=time_slicing(4))
    await cluster.quiet()
    cluster.writes.clear()

    await cluster.apply_config("sharing", any=time_slicing(8))
    await cluster.until_config("gpu01", content=time_slicing(8))
    await cluster.quiet()
    assert len(cluster.writes_to("gpunodes")) == 1

    await cluster.apply_config("sharing", any="replicas: many")
    await cluster.until_condition("ConfigValid", "False", saying="gpu01 keeps")
    assert (await cluster.get(manifests.GPU_NODE, "gpu01"))["spec"]["config"]["content"] == time_slicing(8)
    assert cluster.writes_to("daemonsets") == []


async def test_13_what_contradicts_itself(cluster: GpuCluster) -> None:
    """Found at any time, not only when the operator starts."""
    await cluster.apply_policy()
    await template_of(cluster)

    await cluster.patch_policy({"cdi": {"nriPluginEnabled": True}, "toolkit": {"enabled": False}})
    error = await cluster.until_condition("Error", "True", saying="spec.cdi.nriPluginEnabled: needs toolkit.enabled")
    assert error["reason"] == "ReconcileFailed"


async def test_14_a_mistyped_label(cluster: GpuCluster) -> None:
    """Told, with what there is to choose from."""
    await cluster.apply_config("sharing", any=time_slicing(4), fine=time_slicing(8))
    await cluster.apply_policy(**SHARED)
    await cluster.add_node("gpu01", **{names.LABEL_CONFIG: "fien"})

    await cluster.until_condition("ConfigValid", "False", saying='names "fien"')
    await cluster.until_condition("ConfigValid", "False", saying="(it has any, fine)")


async def test_15_label_and_default_differ() -> None:
    """From the start of its agent a node shows what its label says: capacity, labels and all."""
    async with Sandbox(Options(nodes=1)) as sandbox:
        await sandbox.ready()
        label = {"metadata": {"labels": {names.LABEL_CONFIG: "fine"}}}
        await sandbox.cluster.patch(manifests.NODE, "gpu01", label)
        await create_config(sandbox, any=time_slicing(2), fine=time_slicing(5))
        await sandbox.cluster.patch(manifests.CLUSTER_POLICY, POLICY, {"spec": SHARED})

        node = await until_node(sandbox, capacity="20", replicas="5")
        assert node["metadata"]["labels"]["nvidia.com/gpu.sharing-strategy"] == "time-slicing"
        # Agents that are restarted begin with it.
        for pod in await sandbox.cluster.names(manifests.POD, NAMESPACE, labels=f"app={names.DAEMONSET_DEVICE_PLUGIN}"):
            await sandbox.cluster.delete(manifests.POD, pod, NAMESPACE)
        await until_node(sandbox, capacity="20", replicas="5")


async def create_config(sandbox: Sandbox, **data: str) -> None:
    metadata = {"name": "sharing", "namespace": NAMESPACE}
    await sandbox.cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


async def until_node(sandbox: Sandbox, *, capacity: str, replicas: str) -> Manifest:
    async with asyncio.timeout(120):
        while True:
            node = await sandbox.cluster.get(manifests.NODE, "gpu01") or {}
            shown = (
                node["status"]["capacity"].get(names.RESOURCE_GPU),
                node["metadata"]["labels"].get("nvidia.com/gpu.replicas"),
            )
            if shown == (capacity, replicas):
                return node
            await asyncio.sleep(0.1)


@pytest.mark.timeout(400)
async def test_sharing_scenario() -> None:
    """Replicas 10 by a JSON patch that adds the configuration: five pods run on one GPU, and the labels say so."""
    async with Sandbox(Options(nodes=1)) as sandbox:
        await sandbox.ready()
        await create_config(sandbox, **{"plugin-config.yaml": time_slicing(10)})
        added = {"name": "sharing", "default": "plugin-config.yaml"}
        patch = [{"op": "add", "path": "/spec/devicePlugin/config", "value": added}]
        await sandbox.cluster.patch(manifests.CLUSTER_POLICY, POLICY, patch, patch_type=PatchType.JSON)
        node = await until_node(sandbox, capacity="40", replicas="10")
        product = node["metadata"]["labels"][names.LABEL_PRODUCT]
        assert product.endswith(names.SUFFIX_SHARED)

        container = {"name": "c", "image": "cuda", "resources": {"limits": {names.RESOURCE_GPU: "1"}}}
        spec = {"nodeSelector": {names.LABEL_PRODUCT: product}, "containers": [container]}
        template = {"metadata": {"labels": {"app": "five"}}, "spec": spec}
        deployment = {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "five", "namespace": "default"},
            "spec": {"replicas": 5, "selector": {"matchLabels": {"app": "five"}}, "template": template},
        }  # fmt: skip
        await sandbox.cluster.create(deployment)
        async with asyncio.timeout(120):
            while True:
                found = await sandbox.cluster.get(manifests.DEPLOYMENT, "five", "default") or {}
                if found.get("status", {}).get("availableReplicas") == 5:
                    break
                await asyncio.sleep(0.1)
