"""DaemonSets, Deployments and Jobs in the embedded cluster, through real kubectl."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gpushare.domain import manifests
from gpushare.sandbox.workloads.deployments import replica_sets
from support import workload_cluster
from support.workload_cluster import WorkloadCluster, workload


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[WorkloadCluster]:
    async with workload_cluster.running(tmp_path, "gpu01", "gpu02", "cpu01") as found:
        await found.kubectl("label", "node", "gpu01", "gpu02", "gpu=true")
        yield found


GPU_NODES = {"pod_spec": {"nodeSelector": {"gpu": "true"}}}


async def test_daemon_set_follows_nodes(cluster: WorkloadCluster) -> None:
    """Each node that matches has one pod, as labels come and go."""
    await cluster.apply(workload("DaemonSet", "dp", **GPU_NODES))
    await cluster.kubectl("rollout", "status", "ds/dp")
    assert {pod["spec"]["nodeName"] for pod in await cluster.pods("dp")} == {"gpu01", "gpu02"}

    await cluster.kubectl("label", "node", "cpu01", "gpu=true")
    await cluster.kubectl("wait", "ds/dp", "--for=jsonpath={.status.numberAvailable}=3")
    await cluster.kubectl("label", "node", "gpu01", "gpu-")
    await cluster.kubectl("wait", "ds/dp", "--for=jsonpath={.status.desiredNumberScheduled}=2")
    assert {pod["spec"]["nodeName"] for pod in await cluster.pods("dp")} == {"gpu02", "cpu01"}
    assert len(await cluster.events("DaemonSet", "SuccessfulCreate")) == 3
    assert len(await cluster.events("DaemonSet", "SuccessfulDelete")) == 1


async def test_who_wrote_what(cluster: WorkloadCluster) -> None:
    """Field managers are the programs of a real cluster, as `--show-managed-fields` tells."""
    await cluster.apply(workload("DaemonSet", "dp", **GPU_NODES))
    await cluster.kubectl("rollout", "status", "ds/dp")

    pod = (await cluster.pods("dp"))[0]
    found = {(each["manager"], each.get("subresource", "")) for each in pod["metadata"]["managedFields"]}
    assert found == {("kube-controller-manager", ""), ("kubelet", "status")}
    node = await cluster.get(manifests.NODE, "gpu01")
    assert "kubelet" in {each["manager"] for each in node["metadata"]["managedFields"]}


async def test_daemon_set_rollout(cluster: WorkloadCluster) -> None:
    """Restart, history and undo work as kubectl expects."""
    await cluster.apply(workload("DaemonSet", "dp", **GPU_NODES))
    await cluster.kubectl("rollout", "status", "ds/dp")
    before = {pod["metadata"]["uid"] for pod in await cluster.pods("dp")}

    await cluster.kubectl("set", "image", "ds/dp", "main=nginx:2")
    assert 'daemon set "dp" successfully rolled out' in await cluster.kubectl("rollout", "status", "ds/dp")
    pods = await cluster.pods("dp")
    assert {pod["spec"]["containers"][0]["image"] for pod in pods} == {"nginx:2"}
    assert before.isdisjoint(pod["metadata"]["uid"] for pod in pods)

    history = await cluster.kubectl("rollout", "history", "ds/dp")
    assert history.splitlines()[2:] == ["1         <none>", "2         <none>", ""]
    await cluster.kubectl("rollout", "undo", "ds/dp")
    await cluster.kubectl("rollout", "status", "ds/dp")
    assert {pod["spec"]["containers"][0]["image"] for pod in await cluster.pods("dp")} == {"nginx:1.29"}
    history = await cluster.kubectl("rollout", "history", "ds/dp")
    assert history.splitlines()[2:] == ["2         <none>", "3         <none>", ""]


async def test_daemon_set_goes(cluster: WorkloadCluster) -> None:
    """A deleted DaemonSet takes its pods along; an orphaned pod is adopted by the next one that takes it."""
    await cluster.apply(workload("DaemonSet", "dp", **GPU_NODES))
    await cluster.kubectl("rollout", "status", "ds/dp")
    before = {pod["metadata"]["uid"] for pod in await cluster.pods("dp")}
    await cluster.kubectl("delete", "ds", "dp", "--cascade=orphan")
    await cluster.apply(workload("DaemonSet", "dp", **GPU_NODES))
    await cluster.kubectl("rollout", "status", "ds/dp")
    assert before == {pod["metadata"]["uid"] for pod in await cluster.pods("dp")}

    await cluster.kubectl("delete", "ds", "dp", "--cascade=foreground")
    assert await cluster.pods("dp") == []


async def test_deployment(cluster: WorkloadCluster) -> None:
    """A Deployment rolls out, scales, rolls back and tells about it."""
    await cluster.apply(workload("Deployment", "web", replicas=4))
    await cluster.kubectl("rollout", "status", "deploy/web")
    await cluster.kubectl("set", "image", "deploy/web", "main=nginx:2")
    await cluster.kubectl("rollout", "status", "deploy/web")
    assert {pod["spec"]["containers"][0]["image"] for pod in await cluster.pods("web")} == {"nginx:2"}
    await cluster.kubectl("scale", "deploy/web", "--replicas=2")
    await cluster.kubectl("wait", "deploy/web", "--for=jsonpath={.status.replicas}=2")
    await cluster.kubectl("rollout", "undo", "deploy/web")
    await cluster.kubectl("rollout", "status", "deploy/web")

    deployment = await cluster.get(manifests.DEPLOYMENT, "web")
    assert deployment["metadata"]["annotations"][replica_sets.ANNOTATION_REVISION] == "3"
    assert {pod["spec"]["containers"][0]["image"] for pod in await cluster.pods("web")} == {"nginx:1.29"}
    described = await cluster.kubectl("describe", "deploy", "web")
    assert "2 desired | 2 updated | 2 total | 2 available | 0 unavailable" in described
    assert "Available      True    MinimumReplicasAvailable" in described
    assert "Progressing    True    NewReplicaSetAvailable" in described
    assert any(text.endswith("from 0 to 4") for text in await cluster.events("Deployment", "ScalingReplicaSet"))


async def test_isolated_pod(cluster: WorkloadCluster) -> None:
    """A pod whose label is taken away is let go and replaced, and stays for whoever wants to look at it."""
    await cluster.apply(workload("Deployment", "web", replicas=1))
    await cluster.kubectl("rollout", "status", "deploy/web")
    (pod,) = await cluster.pods("web")
    name = pod["metadata"]["name"]
    await cluster.kubectl("label", "pod", name, "app=debug", "--overwrite")
    await cluster.nodes.until(
        manifests.POD, name, lambda found: not found["metadata"].get("ownerReferences"), namespace="default"
    )
    await cluster.kubectl("wait", "deploy/web", "--for=jsonpath={.status.availableReplicas}=1")
    assert [other["metadata"]["name"] for other in await cluster.pods("web")] != [name]


async def test_too_few_gpus(cluster: WorkloadCluster) -> None:
    """The pod that is one too many waits, says why, and runs as soon as there is a GPU."""
    await cluster.kubectl(*_gpus("gpu01", 2))
    await cluster.apply(workload("Deployment", "cuda", gpus=1, replicas=3))
    pending = ("get", "pods", "-l", "app=cuda", "--field-selector", "status.phase=Pending", "-o", "name")
    await cluster.nodes.until_event("FailedScheduling", "Insufficient nvidia.com/gpu")
    waiting = (await cluster.kubectl(*pending)).split()
    assert len(waiting) == 1
    described = await cluster.kubectl("describe", waiting[0])
    assert (
        "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. no new claims to deallocate, preemption:" in described
    )
    assert "PodScheduled   False" in described

    await cluster.kubectl(*_gpus("gpu02", 1))
    await cluster.kubectl("wait", waiting[0], "--for=condition=PodScheduled")


async def test_job(cluster: WorkloadCluster) -> None:
    """A Job runs until enough pods have ended, and goes when its time is over."""
    job = workload("Job", "once", image="busybox", completions=2, ttlSecondsAfterFinished=1)
    job["apiVersion"] = "batch/v1"
    del job["spec"]["selector"]
    job["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    await cluster.apply(job)
    await cluster.kubectl("wait", "job/once", "--for=condition=Complete")
    await cluster.kubectl("wait", "job/once", "--for=delete")
    assert await cluster.events("Job", "Completed") == ["Job completed"]
    assert len(await cluster.events("Job", "SuccessfulCreate")) == 2


async def test_node_life(cluster: WorkloadCluster) -> None:
    """Nodes are registered, cordoned ones get no pods but those of DaemonSets, tainted ones lose theirs."""
    assert "Node gpu01 event: Registered Node gpu01 in Controller" in await cluster.events("Node", "RegisteredNode")
    await cluster.kubectl("cordon", "gpu01", "gpu02")
    await cluster.apply(workload("DaemonSet", "dp"), workload("Deployment", "web", replicas=2))
    await cluster.kubectl("rollout", "status", "ds/dp")
    await cluster.kubectl("rollout", "status", "deploy/web")
    assert {pod["spec"]["nodeName"] for pod in await cluster.pods("web")} == {"cpu01"}

    await cluster.kubectl("uncordon", "gpu01")
    await cluster.kubectl("taint", "node", "cpu01", "broken=yes:NoExecute")
    await cluster.kubectl("wait", "ds/dp", "--for=jsonpath={.status.desiredNumberScheduled}=2")
    await cluster.nodes.until_event("TaintManagerEviction")
    await cluster.kubectl("rollout", "status", "deploy/web")
    assert {pod["spec"]["nodeName"] for pod in await cluster.pods("web")} == {"gpu01"}


def _gpus(node: str, count: int) -> tuple[str, ...]:
    patch = (
        f'{{"status": {{"capacity": {{"nvidia.com/gpu": "{count}"}}, "allocatable": {{"nvidia.com/gpu": "{count}"}}}}}}'
    )
    return "patch", "node", node, "--subresource=status", "--type=merge", "-p", patch
