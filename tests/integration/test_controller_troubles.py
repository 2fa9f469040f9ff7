"""What happens around the controller: servers that restart, kinds that come late, other replicas, other operators."""

import asyncio
import contextlib
import gc
import json
import logging
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from gpushare import data, names
from gpushare.controller import app, reconciling
from gpushare.domain import manifests
from gpushare.sandbox.apiserver import statuses
from gpushare.sandbox.apiserver.api import Answer
from gpushare.sandbox.apiserver.requests import Request, Response
from support.clusters import IMAGE, NAMESPACE, GpuCluster, prometheus_kind
from support.snapshots import time_slicing

GPU_CLUSTERS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gpuclusters.nvidia.com"},
    "spec": {
        "group": "nvidia.com",
        "scope": "Cluster",
        "names": {"plural": "gpuclusters", "singular": "gpucluster", "kind": "GPUCluster"},
        "versions": [
            {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[GpuCluster]:
    async with GpuCluster.running(tmp_path) as cluster:
        await cluster.add_node("gpu01")
        yield cluster


async def test_server_restart(cluster: GpuCluster) -> None:
    """The API server goes, comes back forbidding everything, then too busy; the controller goes on where it was."""
    async with cluster.controller():
        await cluster.apply_config("time-slicing", any=time_slicing(4))
        await cluster.apply_policy(devicePlugin={"config": {"name": "time-slicing", "default": "any"}})
        await cluster.until_config("gpu01", content=time_slicing(4))

        for _ in range(2):
            await cluster.server.pause()
            await asyncio.sleep(0.3)
            await cluster.server.resume(forbidden=0.3, busy=0.3)
        await asyncio.sleep(0.7)
        await cluster.apply_config("time-slicing", any=time_slicing(8))

        await cluster.until_config("gpu01", content=time_slicing(8))
        assert await cluster.admin.get(manifests.DAEMON_SET, names.DAEMONSET_DEVICE_PLUGIN, NAMESPACE)


async def test_kinds_come_late(cluster: GpuCluster) -> None:
    """Without its kinds the controller waits; when they come, it works."""
    for kind in ("clusterpolicies.nvidia.com", "gpunodes.gpushare.dev"):
        await cluster.admin.delete(manifests.CUSTOM_RESOURCE_DEFINITION, kind)
    async with cluster.controller() as running:
        await asyncio.sleep(0.5)
        assert not running.done()
        for path in sorted(data.path_of("crds").glob("*.yaml")):
            await cluster.admin.apply(yaml.safe_load(path.read_text()), manager="installer")

        await cluster.apply_policy()

        await cluster.until_config("gpu01", reason="none")


async def test_kind_that_may_be_absent(cluster: GpuCluster) -> None:
    """Where Prometheus is told by objects what to read, the next look finds out; and also when that kind is gone again."""
    monitor = (manifests.SERVICE_MONITOR, names.SERVICE_DEVICE_PLUGIN, NAMESPACE)
    async with cluster.controller("--resync-seconds=0.3"):
        await cluster.apply_policy()
        await cluster.until_condition("Ready", "False")
        kind = await cluster.admin.create(prometheus_kind())
        await cluster.until("ServiceMonitor", lambda: cluster.admin.get(*monitor))

        await cluster.admin.delete(manifests.CUSTOM_RESOURCE_DEFINITION, kind["metadata"]["name"])
        await cluster.until_config("gpu01")
        await cluster.roll_out()
        await cluster.run_agent("gpu01")
        await cluster.until_condition("Ready", "True")
        await cluster.quiet()
        cluster.writes.clear()
        await asyncio.sleep(1)
        assert [write for write in cluster.writes if "/leases" not in write] == []


async def test_no_server_at_the_start(cluster: GpuCluster) -> None:
    """A controller that starts before the API server waits for it."""
    await cluster.apply_policy()
    await cluster.server.pause()
    async with cluster.controller():
        await asyncio.sleep(0.3)
        await cluster.server.resume()

        await cluster.until_config("gpu01", reason="none")


async def test_another_operator(cluster: GpuCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a GPUCluster exists another operator is in charge: nothing is written until it goes, which is looked for."""
    monkeypatch.setattr(reconciling, "_RIVAL_SECONDS", 0.3)
    await cluster.admin.apply(GPU_CLUSTERS, manager="installer")
    gpu_cluster = {"apiVersion": "nvidia.com/v1alpha1", "kind": "GPUCluster", "metadata": {"name": "gpu-cluster"}}
    await cluster.until("the kind is served", lambda: _create(cluster, gpu_cluster))
    async with cluster.controller():
        await cluster.apply_policy()
        await cluster.until_condition("Conflict", "True", saying="gpu-cluster")
        assert await cluster.admin.get(manifests.GPU_NODE, "gpu01") is None

        await cluster.admin.delete(manifests.GPU_CLUSTER, "gpu-cluster")
        await cluster.until_config("gpu01", reason="none")


async def _create(cluster: GpuCluster, manifest: dict) -> bool:
    with contextlib.suppress(Exception):
        await cluster.admin.create(manifest)
        return True
    return False


async def test_two_replicas(cluster: GpuCluster) -> None:
    """One replica works; the other takes over when that stops, without waiting for the Lease to run out."""
    async with contextlib.AsyncExitStack() as stack:
        first = contextlib.AsyncExitStack()
        await first.enter_async_context(cluster.controller(identity="first"))
        await cluster.apply_policy()
        await cluster.until_config("gpu01", reason="none")
        await stack.enter_async_context(cluster.controller(identity="second"))
        await asyncio.sleep(0.5)
        assert await holder(cluster) == "first"

        await first.aclose()

        await cluster.add_node("gpu02")
        await cluster.until_config("gpu02", reason="none")
        assert await holder(cluster) == "second"


async def holder(cluster: GpuCluster) -> str:
    return (await cluster.get(manifests.LEASE, names.LEASE, NAMESPACE))["spec"]["holderIdentity"]


async def test_only_one_policy(cluster: GpuCluster) -> None:
    """With --policy every other one is neither followed nor written."""
    await cluster.apply_policy("theirs")
    async with cluster.controller("--policy", "ours"):
        await cluster.apply_policy("ours")
        await cluster.until_condition("ConfigValid", "True", name="ours")

    assert "status" not in await cluster.get(manifests.CLUSTER_POLICY, "theirs")


async def test_misspelt_policy(cluster: GpuCluster, caplog: pytest.LogCaptureFixture) -> None:
    """A controller that is told to follow a policy that is not there leaves alone what runs for another one."""
    daemonset = (manifests.DAEMON_SET, names.DAEMONSET_DEVICE_PLUGIN, NAMESPACE)
    async with cluster.controller():
        await cluster.apply_policy()
        await cluster.until("DaemonSet", lambda: cluster.admin.get(*daemonset))
        await cluster.until_config("gpu01", reason="none")
        await cluster.quiet()
    before = await cluster.get(*daemonset)
    async with cluster.controller("--policy", "cluster-polizy"):
        await cluster.until("it says so", lambda: _has_said(caplog, 'there is no ClusterPolicy "cluster-polizy"'))
        await cluster.quiet()
        assert await cluster.get(*daemonset) == before
        await cluster.until_config("gpu01", reason="none")

        await cluster.apply_policy("cluster-polizy")
        await cluster.until_condition("ConfigValid", "True", name="cluster-polizy")
    assert (await cluster.get(*daemonset))["metadata"]["ownerReferences"][0]["name"] == "cluster-polizy"


async def _has_said(caplog: pytest.LogCaptureFixture, text: str) -> bool:
    return any(text in str(vars(record).get("reason")) for record in caplog.records)


async def test_missing_right(cluster: GpuCluster) -> None:
    """What the controller may not do stands on the policy, in the API server's words, and the rest is done."""
    role = await cluster.get(manifests.ROLE, names.CONTROLLER, NAMESPACE)
    rules = [rule for rule in role["rules"] if "daemonsets" not in rule["resources"]]
    read_only = {"apiGroups": ["apps"], "resources": ["daemonsets"], "verbs": ["get", "list", "watch"]}
    async with cluster.controller():
        await cluster.admin.patch(manifests.ROLE, names.CONTROLLER, {"rules": [*rules, read_only]}, NAMESPACE)
        await cluster.apply_policy()
        await cluster.until_condition("Error", "True", saying='cannot patch resource "daemonsets"')
        await cluster.until_config("gpu01", reason="none")

        await cluster.admin.patch(manifests.ROLE, names.CONTROLLER, {"rules": role["rules"]}, NAMESPACE)

        await cluster.until_condition("Error", "True", saying="is being")
        assert await cluster.admin.get(manifests.DAEMON_SET, names.DAEMONSET_DEVICE_PLUGIN, NAMESPACE)


@pytest.mark.parametrize("changing", [False, True], ids=["one reason", "another reason each time"])
async def test_refused_for_good(cluster: GpuCluster, changing: bool) -> None:
    """Whoever refuses a write is asked less and less often, also where each answer names another time or port."""
    handle, refused, lists = cluster.server.api.handle, 0, 0

    async def moody(request: Request) -> Answer:
        nonlocal refused, lists
        lists += request.method == "GET" and request.path.endswith("/gpuclusters")
        if request.method == "PATCH" and "/daemonsets" in request.path:
            refused += 1
            reason = f"denied after {refused if changing else 1} ms"
            return Response.refused(statuses.ApiError(403, "Forbidden", reason))
        return await handle(request)

    cluster.server.api.handle = moody  # type: ignore[method-assign]
    async with cluster.controller():
        await cluster.apply_policy()
        await cluster.until_condition("Error", "True", saying="denied after")
        await asyncio.sleep(6)

    # In all of the time, which a busy machine makes longer; without pauses, each would be hundreds.
    assert 2 <= refused <= 30
    assert lists <= 6
    assert len(cluster.writes) <= 120


async def test_server_without_streamed_lists(cluster: GpuCluster, caplog: pytest.LogCaptureFixture) -> None:
    """An API server that refuses to stream lists is watched in the old way, which is no reason for an error."""
    caplog.set_level(logging.INFO)
    handle = cluster.server.api.handle

    async def older(request: Request) -> Answer:
        if "sendInitialEvents" in request.query:
            return Response.refused(statuses.ApiError(422, "Invalid", "sendInitialEvents: Forbidden: WatchList is off"))
        return await handle(request)

    cluster.server.api.handle = older  # type: ignore[method-assign]
    async with cluster.controller():
        await cluster.apply_policy()
        await cluster.until_config("gpu01", reason="none")

    gc.collect()  # what nobody has asked a task for is told when the task goes
    assert "the API server streams no lists, reading them in pages" in caplog.messages
    assert [record.reason for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_process(cluster: GpuCluster, tmp_path: Path) -> None:
    """As a process: it logs JSON, tells how it is, and ends with 0 when it is told to."""
    await cluster.apply_policy()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gpushare", "controller", "--kubeconfig", str(cluster.write_kubeconfig())),
        *("--metrics-port", "0", "--namespace", NAMESPACE),
        env={"DEVICE_PLUGIN_IMAGE": IMAGE},
        cwd=tmp_path,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        await cluster.until_config("gpu01", reason="none")
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        _, log = await process.communicate()
        print(log.decode())  # noqa: T201 - for whoever looks why it fails

    assert process.returncode == 0
    lines = [json.loads(line) for line in log.splitlines()]
    assert {"level", "message", "time"} <= lines[0].keys()
    assert "leading" in [line["message"] for line in lines]


async def test_help_and_wrong_usage() -> None:
    """As a process: help ends with 0, what is wrong with 2 and one line."""
    for argv, code, saying in ((["--help"], 0, b"--policy NAME"), (["--polcy"], 2, b"unrecognized arguments: --polcy")):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gpushare", "controller", *argv),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await process.communicate()
        assert (process.returncode, saying in out) == (code, True), out


@pytest.mark.parametrize(
    ("argv", "environ", "message"),
    [
        pytest.param(["--nonsense"], {}, "--nonsense", id="unknown flag"),
        pytest.param([], {}, "use --kubeconfig", id="no pod"),
        pytest.param(["--kubeconfig", "/nowhere"], {}, "/nowhere: No such file", id="no kubeconfig"),
    ],
)
async def test_wrong_usage(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, argv: list[str], environ: dict[str, str], message: str
) -> None:
    """What the command line says is checked before anything starts; the exit code is 2."""
    code = await app.run(argv, environ, root=tmp_path, log=logging.getLogger("controller"), stop=asyncio.Event())

    assert code == 2
    assert message in caplog.records[0].reason
