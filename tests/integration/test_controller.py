"""The controller as it runs in a pod: real kopf, the real client, its own rights, against the embedded API server."""

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gpushare import names
from gpushare.domain import manifests
from support.clusters import IMAGE, NAMESPACE, GpuCluster
from support.snapshots import time_slicing

DAEMONSET = names.DAEMONSET_DEVICE_PLUGIN
ACCOUNT = names.SERVICE_ACCOUNT_DEVICE_PLUGIN
OBJECTS = (
    (manifests.SERVICE_ACCOUNT, ACCOUNT, NAMESPACE),
    (manifests.ROLE, ACCOUNT, NAMESPACE),
    (manifests.ROLE_BINDING, ACCOUNT, NAMESPACE),
    (manifests.CLUSTER_ROLE, names.CLUSTER_ROLE_AGENT, ""),
    (manifests.CLUSTER_ROLE_BINDING, names.CLUSTER_ROLE_AGENT, ""),
    (manifests.DAEMON_SET, DAEMONSET, NAMESPACE),
)
SHARED = {"devicePlugin": {"config": {"name": "time-slicing", "default": "any"}}}


@pytest.fixture
async def cluster(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> AsyncIterator[GpuCluster]:
    """One GPU node and one without; whatever a test does, the controller was never refused anything."""
    caplog.set_level(logging.WARNING, "controller")
    async with GpuCluster.running(tmp_path) as cluster:
        await cluster.add_node("gpu01")
        await cluster.add_node("cpu01", gpu=False)
        yield cluster
    assert not [record.reason for record in caplog.records if "forbidden" in getattr(record, "reason", "")]


async def labels_of(cluster: GpuCluster, node: str) -> dict[str, str]:
    return (await cluster.get(manifests.NODE, node))["metadata"]["labels"]


async def test_policy_comes_and_goes(cluster: GpuCluster) -> None:
    """A policy brings everything that it names, and takes everything with it."""
    async with cluster.controller():
        await cluster.apply_policy()
        await cluster.until_config("gpu01", reason="none")

        for key in OBJECTS:
            await cluster.until(f"{key[1]} is there", lambda key=key: cluster.admin.get(*key))
        container = (await cluster.get(*OBJECTS[-1]))["spec"]["template"]["spec"]["containers"][0]
        assert (container["image"], container["args"]) == (IMAGE, ["agent"])
        labels = await cluster.until("labels", lambda: _labelled(cluster, "gpu01"))
        assert labels["nvidia.com/gpu.deploy.device-plugin"] == "true"
        assert not any(key.startswith("nvidia.com/") for key in await labels_of(cluster, "cpu01"))

        await cluster.admin.delete(manifests.CLUSTER_POLICY, "cluster-policy")

        for key in (*OBJECTS, (manifests.GPU_NODE, "gpu01", "")):
            await cluster.until(f"{key[1]} is gone", lambda key=key: _gone(cluster, key))
        await cluster.until("labels are gone", lambda: _unlabelled(cluster, "gpu01"))


async def _labelled(cluster: GpuCluster, node: str) -> dict[str, str] | None:
    labels = await labels_of(cluster, node)
    return labels if labels.get(names.LABEL_PRESENT) == "true" else None


async def _unlabelled(cluster: GpuCluster, node: str) -> bool:
    return not any(key.startswith("nvidia.com/") for key in await labels_of(cluster, node))


async def _gone(cluster: GpuCluster, key: tuple) -> bool:
    return await cluster.admin.get(*key) is None


async def test_ready(cluster: GpuCluster) -> None:
    """When the agent runs what it was given, the policy is ready and the facts are on the node."""
    async with cluster.controller():
        await cluster.apply_config("time-slicing", any=time_slicing(4))
        await cluster.apply_policy(**SHARED)
        config = await cluster.until_config("gpu01", reason="default", content=time_slicing(4))
        assert config["source"] == {"namespace": NAMESPACE, "name": "time-slicing", "key": "any"}
        await cluster.until_condition("Ready", "False")

        await cluster.roll_out()
        await cluster.run_agent("gpu01", labels={"nvidia.com/gpu.product": "Tesla-T4-SHARED", "evil/label": "x"})

        await cluster.until_condition("Ready", "True", saying="successfully reconciled")
        await cluster.until_condition("RolledOut", "True", saying="1 of 1")
        policy = await cluster.get(manifests.CLUSTER_POLICY, "cluster-policy")
        assert policy["status"]["state"] == "ready"
        labels = await cluster.until("facts", lambda: _product(cluster))
        assert labels["nvidia.com/gpu.product"] == "Tesla-T4-SHARED"
        assert "evil/label" not in labels


async def _product(cluster: GpuCluster) -> dict[str, str] | None:
    labels = await labels_of(cluster, "gpu01")
    return labels if "nvidia.com/gpu.product" in labels else None


async def test_nothing_to_change(cluster: GpuCluster) -> None:
    """A pass with nothing to do writes nothing, and neither does a restart of the controller."""
    async with cluster.controller():
        await cluster.apply_config("time-slicing", any=time_slicing(4))
        await cluster.apply_policy(**SHARED)
        await cluster.until_config("gpu01", reason="default")
        await cluster.roll_out()
        await cluster.run_agent("gpu01")
        await cluster.until_condition("Ready", "True")
        await cluster.quiet()

        cluster.writes.clear()
        await cluster.report("gpu01", allocations=[{"index": 0, "containers": []}])
        await cluster.admin.patch(manifests.NODE, "gpu01", {"metadata": {"annotations": {"heart": "beat"}}})
        await cluster.apply_config("another", key="text")
        await cluster.quiet()
        assert [write for write in cluster.writes if "/leases" not in write] == []

    async with cluster.controller("--resync-seconds=0.2"):
        await asyncio.sleep(1.5)
    assert [write for write in cluster.writes if "/leases" not in write] == []


async def test_one_write_a_node(cluster: GpuCluster) -> None:
    """An edit of a configuration is one write on each GPUNode that it concerns, and none on a Node or a DaemonSet."""
    for number in range(2, 12):
        await cluster.add_node(f"gpu{number:02}")
    async with cluster.controller():
        await cluster.apply_config("time-slicing", any=time_slicing(4))
        await cluster.apply_policy(**SHARED)
        await cluster.until_config("gpu11", reason="default")
        await cluster.quiet()
        assert len(cluster.writes_to("nodes")) == 11

        cluster.writes.clear()
        await cluster.apply_config("time-slicing", any=time_slicing(8))
        await cluster.until_config("gpu11", content=time_slicing(8))
        await cluster.quiet()

    assert len(cluster.writes_to("gpunodes")) == 11
    assert cluster.writes_to("nodes", "daemonsets") == []


async def test_choosing_by_label(cluster: GpuCluster) -> None:
    """The node's label beats the default, takes effect at once, and its removal too."""
    async with cluster.controller():
        await cluster.apply_config("fine", any=time_slicing(4), tesla_t4=time_slicing(8))
        await cluster.apply_policy(devicePlugin={"config": {"name": "fine"}})
        await cluster.until_config("gpu01", reason="none")

        await cluster.label("gpu01", config="tesla-t4")
        await cluster.until_config("gpu01", reason="label", content=time_slicing(8))

        await cluster.label("gpu01", config="any")
        await cluster.until_config("gpu01", reason="label", content=time_slicing(4))

        await cluster.label("gpu01", config=None)
        await cluster.until_config("gpu01", reason="none", content="")


async def test_opt_out(cluster: GpuCluster) -> None:
    """What a person wrote into a deploy label stays, and nobody fights over it."""
    await cluster.label("gpu01", **{"gpu.deploy.dcgm": "false"})
    async with cluster.controller():
        await cluster.apply_policy()
        labels = await cluster.until("labels", lambda: _labelled(cluster, "gpu01"))

    assert labels["nvidia.com/gpu.deploy.dcgm"] == "false"
    assert labels["nvidia.com/gpu.deploy.driver"] == "true"


async def test_switched_off(cluster: GpuCluster) -> None:
    """A policy that no longer wants the plugin loses all that it brought, and only that."""
    theirs = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "theirs", "namespace": NAMESPACE, "labels": {"app.kubernetes.io/managed-by": "helm"}},
    }
    await cluster.admin.create(theirs)
    async with cluster.controller("--leader-elect=false"):
        await cluster.apply_policy()
        await cluster.until_config("gpu01", reason="none")
        for key in OBJECTS:
            await cluster.until(f"{key[1]} is there", lambda key=key: cluster.admin.get(*key))

        await cluster.patch_policy({"devicePlugin": {"enabled": False}})

        for key in (*OBJECTS, (manifests.GPU_NODE, "gpu01", "")):
            await cluster.until(f"{key[1]} is gone", lambda key=key: _gone(cluster, key))
        assert (await labels_of(cluster, "gpu01"))[names.LABEL_PRESENT] == "true"
    assert await cluster.admin.get(manifests.SERVICE_ACCOUNT, "theirs", NAMESPACE)
    assert await cluster.admin.get(manifests.LEASE, names.LEASE, NAMESPACE) is None


async def test_drift(cluster: GpuCluster) -> None:
    """What somebody changes or deletes of our objects is mended; what they add stays."""
    async with cluster.controller():
        await cluster.apply_policy()
        await cluster.until("the DaemonSet", lambda: cluster.admin.get(*OBJECTS[-1]))

        await cluster.admin.delete(*OBJECTS[3])
        await cluster.until("the ClusterRole is back", lambda: cluster.admin.get(*OBJECTS[3]))

        spec = {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}}
        await cluster.admin.patch(manifests.DAEMON_SET, DAEMONSET, {"spec": spec}, NAMESPACE)
        spec = {"template": {"spec": {"priorityClassName": "system-cluster-critical"}}}
        await cluster.admin.patch(manifests.DAEMON_SET, DAEMONSET, {"spec": spec}, NAMESPACE)

        async def mended() -> bool:
            template = (await cluster.get(*OBJECTS[-1]))["spec"]["template"]
            assert template["metadata"]["annotations"] == {"kubectl.kubernetes.io/restartedAt": "now"}
            return template["spec"]["priorityClassName"] == "system-node-critical"

        await cluster.until("the DaemonSet is mended", mended)


async def test_node_goes_and_comes_back(cluster: GpuCluster) -> None:
    """A Node that is replaced under its name gets a GPUNode of its own."""
    async with cluster.controller():
        await cluster.apply_policy()
        await cluster.until_config("gpu01", reason="none")
        before = await cluster.get(manifests.GPU_NODE, "gpu01")

        await cluster.admin.delete(manifests.NODE, "gpu01")
        node = await cluster.add_node("gpu01")

        async def owned_by_the_new_one() -> bool:
            gpu_node = await cluster.get(manifests.GPU_NODE, "gpu01")
            assert gpu_node["metadata"]["uid"] != before["metadata"]["uid"]
            return gpu_node["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]

        await cluster.until("a new GPUNode", owned_by_the_new_one)


async def test_events(cluster: GpuCluster) -> None:
    """What happens is told on the policy, on the ConfigMap and on the node, once each."""
    async with cluster.controller():
        await cluster.apply_config("time-slicing", any="sharing: nonsense")
        await cluster.apply_policy(**SHARED)
        await cluster.until_condition("ConfigValid", "False", saying="is not valid: sharing (line 1)")

        async def told() -> bool:
            events = (await cluster.admin.list(manifests.EVENT)).items
            refused = [event for event in events if event["reason"] == "ConfigRefused"]
            kinds = sorted(event["involvedObject"]["kind"] for event in refused)
            return kinds == ["ClusterPolicy", "ConfigMap", "Node"]

        await cluster.until("three Events", told)
        await cluster.quiet()
        assert await told()


async def test_log(cluster: GpuCluster, caplog: pytest.LogCaptureFixture) -> None:
    """The log has a line for each change, the text of a refusal as a warning, and nothing while nothing changes."""
    caplog.set_level(logging.INFO, "controller")
    async with cluster.controller():
        await cluster.apply_config("time-slicing", any=time_slicing(4))
        await cluster.apply_policy(**SHARED)
        await cluster.until_config("gpu01", content=time_slicing(4))
        await cluster.quiet()
        lines = {record.getMessage(): record for record in caplog.records}
        assert lines["following policy"].policy == "cluster-policy"
        applied = {
            record.component: record.objects for record in caplog.records if "objects applied" in record.getMessage()
        }
        assert f"DaemonSet {NAMESPACE}/{DAEMONSET}" in applied["device-plugin"]
        assigned = lines["configurations assigned"]
        assert (assigned.count, assigned.nodes) == (1, "gpu01")
        assert assigned.configs.startswith("any (revision ")
        assert lines["nodes labelled"].nodes == "gpu01"
        assert lines["status of policy written"].state == "notReady"

        caplog.clear()
        await cluster.apply_config("time-slicing", any="sharing: nonsense")
        refused = await cluster.until_condition("ConfigValid", "False")
        await cluster.quiet()
        [warning] = [record for record in caplog.records if record.levelno == logging.WARNING]
        assert (warning.event, warning.text) == ("ConfigRefused", refused["message"])

        caplog.clear()
        await cluster.admin.patch(manifests.NODE, "gpu01", {"metadata": {"annotations": {"heart": "beat"}}})
        await cluster.quiet()
        assert caplog.records == []

        await cluster.admin.delete(manifests.CLUSTER_POLICY, "cluster-policy")
        await cluster.until("GPUNode is gone", lambda: _gone(cluster, (manifests.GPU_NODE, "gpu01", "")))
        await cluster.quiet()
        assert "no policy: what the operator made is removed" in [record.getMessage() for record in caplog.records]


async def test_log_of_a_new_process(cluster: GpuCluster, caplog: pytest.LogCaptureFixture) -> None:
    """A controller that starts begins its log with how things stand, also where nothing changes."""
    async with cluster.controller():
        await cluster.apply_policy(**SHARED)
        refused = await cluster.until_condition("ConfigValid", "False", saying="does not exist")
        await cluster.quiet()
    caplog.clear()

    async def told() -> bool:
        return "told on the policy" in caplog.messages

    async with cluster.controller():
        await cluster.until("it is told", told)
        await cluster.quiet()

    [warning] = [record for record in caplog.records if record.getMessage() == "told on the policy"]
    assert (warning.levelno, warning.text) == (logging.WARNING, refused["message"])
