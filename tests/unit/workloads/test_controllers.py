"""The controllers' processes against a cluster in memory and a kubelet of a few lines: what needs time, or goes wrong."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager

import pytest

from gpushare.domain import manifests
from gpushare.errors import ClusterRefused, ClusterUnavailable
from gpushare.kube import watching
from gpushare.kube.watching import Changed
from gpushare.sandbox import scheduling, workloads
from gpushare.sandbox.workloads.nodes import collecting, silence
from support import workload_objects as objects
from support.memory_cluster import MemoryCluster

LOG = logging.getLogger(__name__)
READY = {"type": "Ready", "status": "True", "lastTransitionTime": objects.TIME}


class World:
    """A cluster, and how its pods fare."""

    def __init__(self) -> None:
        self.cluster = MemoryCluster()
        self.phase = "Running"
        """What becomes of pods that have a node."""

    async def kubelet(self) -> None:
        async for change in watching.follow(self.cluster, manifests.POD, log=LOG):
            if isinstance(change, Changed):
                await self._live(change.event.object)

    async def _live(self, pod) -> None:
        name = pod["metadata"]["name"]
        if "deletionTimestamp" in pod["metadata"]:
            await self.cluster.delete(manifests.POD, name, "default", grace_seconds=0)
        elif pod["spec"].get("nodeName") and pod.get("status", {}).get("phase", "Pending") == "Pending":
            status = {"phase": self.phase, "conditions": [READY] if self.phase == "Running" else []}
            await self.cluster.patch(manifests.POD, name, {"status": status}, "default")

    def status(self, kind, name):
        return self.cluster.now(kind, name, "" if kind == manifests.NODE else "default").get("status", {})

    def reasons(self):
        return [event["reason"] for event in self.cluster.all(manifests.EVENT)]

    def is_rolled_out(self, name, generation):
        """Whether every pod of a Deployment is of this generation, and available."""
        wanted = self.cluster.now(manifests.DEPLOYMENT, name, "default")["spec"]["replicas"]
        found = self.status(manifests.DEPLOYMENT, name)
        counts = {found.get(f"{kind}Replicas") for kind in ("updated", "available")} | {found.get("replicas")}
        return found.get("observedGeneration") == generation and counts == {wanted}

    async def template(self, kind, name, note):
        """Changes a workload's template."""
        body = {"spec": {"template": {"metadata": {"annotations": {"note": note}}}}}
        await self.cluster.patch(kind, name, body, "default")

    @asynccontextmanager
    async def alive(self, *nodes: str):
        for name in nodes:
            await self.cluster.create(objects.node(name, conditions={"Ready": "True"}))
        stop = asyncio.Event()
        tasks = [
            asyncio.create_task(workloads.run(self.cluster, LOG, stop)),
            asyncio.create_task(scheduling.run(self.cluster, LOG, stop)),
        ]
        kubelet = asyncio.create_task(self.kubelet())
        try:
            yield
        finally:
            stop.set()
            await asyncio.gather(*tasks)
            kubelet.cancel()


@pytest.fixture
def world():
    return World()


async def test_daemon_set_failing(world):
    """A pod that keeps failing is replaced, each time later, with an event each time."""
    world.phase = "Failed"
    async with world.alive("a"):
        await world.cluster.create(objects.workload("DaemonSet", "dp"))
        await world.cluster.until(lambda: world.reasons().count("FailedDaemonPod") == 1)
        await world.cluster.until(lambda: len(world.cluster.all(manifests.POD)) == 1)
        world.phase = "Running"
        await world.cluster.until(lambda: world.status(manifests.DAEMON_SET, "dp").get("numberReady") == 1)
    assert world.reasons().count("SuccessfulCreate") >= 2


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ClusterUnavailable("restarting"), id="unavailable"),
        pytest.param(ClusterRefused("quota", code=403), id="refused"),
    ],
)
async def test_failed_create(world, error):
    """A pod that could not be created is tried again, and people can read why."""
    async with world.alive("a"):
        world.cluster.refusals["create Pod"] = error
        await world.cluster.create(objects.workload("ReplicaSet", "web", spec={"replicas": 1}))
        await world.cluster.until(lambda: world.status(manifests.REPLICA_SET, "web").get("readyReplicas") == 1)
        await world.cluster.until(lambda: "SuccessfulCreate" in world.reasons())
    (event,) = [event for event in world.cluster.all(manifests.EVENT) if event["reason"] == "FailedCreate"]
    assert event["message"] == f"Error creating: {error}"


async def test_daemon_set_that_may_not_create(world):
    """Its status tells how things are all the same: who waits for a rollout sees that the change was noticed."""
    async with world.alive("a"):
        world.cluster.refusals["create Pod"] = ClusterRefused("no such priority class", code=403)
        await world.cluster.create(objects.workload("DaemonSet", "dp"))
        await world.cluster.until(lambda: world.status(manifests.DAEMON_SET, "dp").get("numberReady") == 1)

    status, pod = "replace DaemonSet dp/status", "create Pod"
    first = next(write for write in world.cluster.writes if write == status or write.startswith(pod))
    assert first == status


async def test_recreate(world):
    """Old and new pods of a Deployment that recreates are never there together."""
    spec = {"replicas": 3, "strategy": {"type": "Recreate"}}
    seen = []
    async with world.alive("a", "b"):
        await world.cluster.create(objects.workload("Deployment", "web", spec=spec))
        await world.cluster.until(lambda: world.is_rolled_out("web", 1))
        await world.template(manifests.DEPLOYMENT, "web", "new")

        def is_done():
            hashes = {pod["metadata"]["labels"]["pod-template-hash"] for pod in world.cluster.all(manifests.POD)}
            seen.append(len(hashes))
            return world.is_rolled_out("web", 2)

        await world.cluster.until(is_done)
    assert max(seen) == 1


async def test_history_limit(world):
    """Old ReplicaSets beyond the limit go once a rollout is over."""
    spec = {"replicas": 1, "revisionHistoryLimit": 1}
    async with world.alive("a"):
        await world.cluster.create(objects.workload("Deployment", "web", spec=spec))
        for note in ("one", "two", "three"):
            generation = world.cluster.now(manifests.DEPLOYMENT, "web", "default")["metadata"]["generation"]
            await world.cluster.until(lambda generation=generation: world.is_rolled_out("web", generation))
            await world.template(manifests.DEPLOYMENT, "web", note)
        await world.cluster.until(lambda: len(world.cluster.all(manifests.REPLICA_SET)) == 2)


async def test_job_fails(world):
    """A Job whose pods fail says so when it gives up."""
    world.phase = "Failed"
    job = objects.workload("Job", "once", spec={"completions": 1, "parallelism": 1, "backoffLimit": 0})
    async with world.alive("a"):
        await world.cluster.create(job)
        await world.cluster.until(lambda: "BackoffLimitExceeded" in world.reasons())
    conditions = world.status(manifests.JOB, "once")["conditions"]
    assert [condition["type"] for condition in conditions] == ["FailureTarget", "Failed"]


async def test_job_suspended(world):
    """A Job on hold loses its pods, and gets new ones when it goes on."""
    async with world.alive("a"):
        await world.cluster.create(objects.workload("Job", "once", spec={"completions": 1, "parallelism": 1}))
        await world.cluster.until(lambda: world.status(manifests.JOB, "once").get("ready") == 1)
        await world.cluster.patch(manifests.JOB, "once", {"spec": {"suspend": True}}, "default")
        await world.cluster.until(lambda: not world.cluster.all(manifests.POD))
        await world.cluster.patch(manifests.JOB, "once", {"spec": {"suspend": False}}, "default")
        await world.cluster.until(lambda: world.status(manifests.JOB, "once").get("ready") == 1)


async def test_silent_node(world, monkeypatch):
    """A kubelet that is not heard of loses its node's readiness and its pods', until it speaks again."""
    monkeypatch.setattr(silence, "GRACE_SECONDS", 0.2)
    async with world.alive("a"):
        await world.cluster.create(objects.workload("ReplicaSet", "web", spec={"replicas": 1}))
        await world.cluster.until(lambda: world.reasons().count("NodeNotReady") == 2)
        (pod,) = world.cluster.all(manifests.POD)
        node = world.cluster.now(manifests.NODE, "a")
        assert pod["status"]["conditions"][0]["status"] == "False"
        assert node["status"]["conditions"][0]["reason"] == "NodeStatusUnknown"
        await world.cluster.until(lambda: "taints" in world.cluster.now(manifests.NODE, "a")["spec"])

        body = {"status": {"conditions": [READY | {"lastHeartbeatTime": "2026-01-01T00:05:00Z"}]}}
        await world.cluster.patch(manifests.NODE, "a", body)
        await world.cluster.until(lambda: "taints" not in world.cluster.now(manifests.NODE, "a")["spec"])


async def test_renewed_lease(world, monkeypatch):
    """A lease that is renewed keeps the node ready."""
    monkeypatch.setattr(silence, "GRACE_SECONDS", 1.0)
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "a", "namespace": "kube-node-lease"},
        "spec": {},
    }
    async with world.alive("a", "b"):
        await world.cluster.create(lease)
        beats = 0
        while world.status(manifests.NODE, "b")["conditions"][0]["status"] == "True":
            await asyncio.sleep(0.05)
            beats += 1
            body = {"spec": {"renewTime": str(beats)}}
            await world.cluster.patch(manifests.LEASE, "a", body, "kube-node-lease")
    assert world.status(manifests.NODE, "a")["conditions"][0]["status"] == "True"


async def test_gone_node(world, monkeypatch):
    """Pods of a node that is gone for long are removed, though nobody ends them, and replaced elsewhere."""
    monkeypatch.setattr(collecting, "_PATIENCE_SECONDS", 0.05)
    async with world.alive("a"):
        await world.cluster.create(objects.workload("ReplicaSet", "web", spec={"replicas": 1}))
        await world.cluster.until(lambda: world.status(manifests.REPLICA_SET, "web").get("readyReplicas") == 1)
        (pod,) = world.cluster.all(manifests.POD)
        await world.cluster.create(objects.node("b", conditions={"Ready": "True"}))
        await world.cluster.delete(manifests.NODE, "a")
        await world.cluster.until(
            lambda: [found["spec"].get("nodeName") for found in world.cluster.all(manifests.POD)] == ["b"]
        )
        await world.cluster.until(lambda: "RemovingNode" in world.reasons())
    assert world.cluster.all(manifests.POD)[0]["metadata"]["name"] != pod["metadata"]["name"]


async def test_nothing_to_do(world):
    """A cluster where all is as it should be is not written to."""
    async with world.alive("a", "b"):
        await world.cluster.create(objects.workload("DaemonSet", "dp"))
        await world.cluster.create(objects.workload("Deployment", "web", spec={"replicas": 3}))
        await world.cluster.until(
            lambda: (
                world.status(manifests.DAEMON_SET, "dp").get("numberAvailable") == 2
                and world.status(manifests.DEPLOYMENT, "web").get("availableReplicas") == 3
                and len(world.cluster.all(manifests.EVENT)) == 2 + 5 + 5 + 1
            )
        )
        for _ in range(50):  # what is still on its way comes to its end, however busy the machine is
            before = list(world.cluster.writes)
            await asyncio.sleep(0.2)
            if world.cluster.writes == before:
                break
    assert world.cluster.writes == before
