"""What people get wrong, and what they read about it; nothing that runs is disturbed, and a correction takes effect."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gpushare.domain import manifests
from support.clusters import NAMESPACE, GpuCluster
from support.snapshots import time_slicing

GOOD = time_slicing(4)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[GpuCluster]:
    async with GpuCluster.running(tmp_path) as cluster:
        await cluster.add_node("gpu01")
        yield cluster


@pytest.mark.parametrize(
    ("texts", "saying"),
    [
        pytest.param({"any": "version: v1\nsharing: [\n"}, "any", id="unreadable"),
        pytest.param({"any": ""}, "it is empty", id="empty"),
        pytest.param(
            {
                "any": "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - {name: nvidia.com/gpu, replica: 4}\n"
            },
            "replicas",
            id="a typo in a key",
        ),
        pytest.param({"any": "version: v1\nflags:\n  renameByDefault: true\n"}, "renameByDefault", id="wrong level"),
        pytest.param(
            {"any": f"{GOOD}  mps:\n    resources:\n    - {{name: nvidia.com/gpu, replicas: 2}}\n"},
            "mps",
            id="contradictory",
        ),
        pytest.param({"other": GOOD}, "(it has other)", id="no such key"),
        pytest.param(None, "does not exist", id="no ConfigMap"),
    ],
)
async def test_bad_configuration(cluster: GpuCluster, texts: dict[str, str] | None, saying: str) -> None:
    """A node keeps what it runs; policy and GPUNode say what is wrong; the correction takes effect."""
    async with cluster.controller():
        await cluster.apply_config("time-slicing", any=GOOD)
        await cluster.apply_policy(devicePlugin={"config": {"name": "time-slicing", "default": "any"}})
        kept = await cluster.until_config("gpu01", content=GOOD)

        await cluster.admin.delete(manifests.CONFIG_MAP, "time-slicing", NAMESPACE)
        if texts is not None:
            await cluster.apply_config("time-slicing", **texts)

        await cluster.until_condition("ConfigValid", "False", saying=saying)
        assert (await cluster.get(manifests.GPU_NODE, "gpu01"))["spec"]["config"] == kept
        conditions = (await cluster.get(manifests.GPU_NODE, "gpu01"))["status"]["conditions"]
        [assigned] = [condition for condition in conditions if condition["type"] == "ConfigAssigned"]
        assert assigned["status"] == "False"
        assert saying in assigned["message"]

        await cluster.apply_config("time-slicing", any=time_slicing(8))
        await cluster.until_condition("ConfigValid", "True")
        await cluster.until_config("gpu01", content=time_slicing(8))


async def test_wrong_namespace(cluster: GpuCluster) -> None:
    """A ConfigMap in another namespace is found there, and the message says where it belongs."""
    async with cluster.controller():
        await cluster.apply_config("time-slicing", namespace="default", any=GOOD)
        await cluster.apply_policy(devicePlugin={"config": {"name": "time-slicing", "default": "any"}})
        await cluster.until_condition(
            "ConfigValid", "False", saying="is in namespace default, but must be in gpu-operator"
        )
        await cluster.until_config("gpu01", reason="none")

        await cluster.apply_config("time-slicing", any=GOOD)
        await cluster.until_config("gpu01", content=GOOD)


async def test_wrong_namespace_afterwards(cluster: GpuCluster) -> None:
    """Whoever is told that the ConfigMap is missing, and creates it in the wrong place, is told that next."""
    async with cluster.controller():
        await cluster.apply_policy(devicePlugin={"config": {"name": "time-slicing", "default": "any"}})
        await cluster.until_condition("ConfigValid", "False", saying="does not exist: create it")
        await cluster.quiet(0.3)

        await cluster.apply_config("time-slicing", namespace="default", any=GOOD)
        await cluster.until_condition("ConfigValid", "False", saying="is in namespace default, but must be in")
        await cluster.apply_config("time-slicing", namespace="kube-system", any=GOOD)
        await cluster.until_condition("ConfigValid", "False", saying="is in namespace default, kube-system, but")
        for namespace in ("default", "kube-system"):
            await cluster.admin.delete(manifests.CONFIG_MAP, "time-slicing", namespace)
        await cluster.until_condition("ConfigValid", "False", saying="does not exist: create it")


async def test_wrong_label(cluster: GpuCluster) -> None:
    """A label that names no key changes nothing, and the message offers the keys that there are."""
    async with cluster.controller():
        await cluster.apply_config("fine", tesla_t4=GOOD)
        await cluster.apply_policy(devicePlugin={"config": {"name": "fine"}})
        await cluster.label("gpu01", config="tesla-t5")
        await cluster.until_condition("ConfigValid", "False", saying="(it has tesla-t4)")
        await cluster.until_config("gpu01", reason="none")

        await cluster.label("gpu01", config="tesla-t4")
        await cluster.until_config("gpu01", content=GOOD)


async def test_second_policy(cluster: GpuCluster) -> None:
    """The older policy counts, the other says so, and takes over when the first goes."""
    async with cluster.controller():
        await cluster.apply_config("time-slicing", any=GOOD)
        await cluster.apply_policy(devicePlugin={"config": {"name": "time-slicing", "default": "any"}})
        await cluster.until_config("gpu01", content=GOOD)
        await cluster.apply_policy("second-policy")

        await cluster.until_condition("Error", "True", saying="cluster-policy", name="second-policy")
        second = await cluster.get(manifests.CLUSTER_POLICY, "second-policy")
        assert second["status"]["state"] == "ignored"
        await cluster.until_config("gpu01", content=GOOD)

        await cluster.admin.delete(manifests.CLUSTER_POLICY, "cluster-policy")
        await cluster.until_config("gpu01", reason="none", content="")


async def test_policy_loses_its_spec(cluster: GpuCluster) -> None:
    """`spec: null` passes every schema; nothing is changed on its account, and the policy says what to do."""
    async with cluster.controller():
        await cluster.apply_config("time-slicing", any=GOOD)
        await cluster.apply_policy(devicePlugin={"config": {"name": "time-slicing", "default": "any"}})
        await cluster.until_config("gpu01", content=GOOD)

        await cluster.patch_policy(None)
        await cluster.until_condition("Error", "True", saying="spec: is missing")
        await cluster.until_config("gpu01", content=GOOD)
        assert await cluster.admin.get(manifests.DAEMON_SET, "nvidia-device-plugin-daemonset", NAMESPACE)

        await cluster.apply_policy()
        await cluster.until_config("gpu01", reason="none", content="")


async def test_policy_without_spec(cluster: GpuCluster) -> None:
    """A policy that never had a spec says so, and nothing else happens."""
    body = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "cluster-policy"}}
    async with cluster.controller():
        await cluster.admin.create(body)
        await cluster.until_condition("Error", "True", saying="spec: is missing")
        assert await cluster.admin.get(manifests.GPU_NODE, "gpu01") is None

        await cluster.apply_policy()
        await cluster.until_config("gpu01", reason="none")


async def test_resource_that_a_node_lacks(cluster: GpuCluster) -> None:
    """What the agent says of a configuration that it could apply only in part is a warning on the policy."""
    async with cluster.controller():
        await cluster.apply_config("time-slicing", any=GOOD)
        await cluster.apply_policy(devicePlugin={"config": {"name": "time-slicing", "default": "any"}})
        await cluster.until_config("gpu01", content=GOOD)
        await cluster.roll_out()
        await cluster.run_agent("gpu01")
        await cluster.report(
            "gpu01",
            problems=[{"path": "any", "message": "nvidia.com/mig-7g.40gb: the node has none"}],
        )

        await cluster.until_condition("Ready", "True")
