"""The whole scheduler in an embedded cluster: with the rights and the webhook of the chart, over real watches."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import ssl
from base64 import b64decode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.fractions import Decision
from gpushare.errors import ClusterRefused
from gpushare.kube.http import Address, Connection
from gpushare.scheduler import app
from support import helm
from support.clusters import NAMESPACE, GpuCluster
from support.placements import hami
from support.schedulers import free_port, gpu_node, pod

ACCOUNT = f"system:serviceaccount:{NAMESPACE}:{names.SCHEDULER}"
GROUPS = ("system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated")
WAIT_SECONDS = 60.0


class Running:
    """The cluster, and a scheduler in it."""

    def __init__(self, cluster: GpuCluster, port: int) -> None:
        self.cluster = cluster
        self.port = port

    async def ask(self, verb: str, body: Any) -> Any:
        """As kube-scheduler asks."""
        secret = await self.cluster.admin.get(manifests.SECRET, names.SECRET_SCHEDULER, NAMESPACE)
        assert secret is not None
        context = ssl.create_default_context(cadata=b64decode(secret["data"]["ca.crt"]).decode())
        connection = await Connection.open(Address.parse(f"https://127.0.0.1:{self.port}", context))
        try:
            method = "GET" if body is None else "POST"
            content = b"" if body is None else json.dumps(body).encode()
            code = await connection.request(method, f"/{verb}", [("Host", "127.0.0.1")], content)
            text = await connection.body()
        finally:
            await connection.close()
        return (code, text.decode()) if body is None else json.loads(text)

    async def until_ready(self) -> None:
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                with contextlib.suppress(OSError, AssertionError, KeyError):
                    if (await self.ask("readyz", None))[0] == 200:
                        return
                await asyncio.sleep(0.05)


@pytest.fixture
async def running(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> AsyncIterator[Running]:
    """Nothing that the scheduler does is refused by its rights."""
    port, stop = free_port(), asyncio.Event()
    async with GpuCluster.running(tmp_path) as cluster:
        await _install(cluster, port)
        kubeconfig = tmp_path / "scheduler.yaml"
        kubeconfig.write_text(yaml.safe_dump(cluster.server.kubeconfig(ACCOUNT, GROUPS)))
        argv = [
            "--kubeconfig",
            str(kubeconfig),
            "--namespace",
            NAMESPACE,
            "--port",
            str(port),
            "--address",
            "127.0.0.1",
        ]
        log = logging.getLogger("scheduler")
        task = asyncio.create_task(app.run(argv, {}, root=tmp_path, log=log, stop=stop))
        found = Running(cluster, port)
        await found.until_ready()
        try:
            yield found
        finally:
            stop.set()
            assert await task == 0
    assert "forbidden" not in caplog.text


async def _install(cluster: GpuCluster, port: int) -> None:
    """What the chart installs, with the webhook where this scheduler is."""
    wanted = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ServiceAccount", "Secret")
    for manifest in helm.render("--set", "fractions.enabled=true"):
        if not manifest["metadata"]["name"].startswith(names.SCHEDULER):
            continue
        if manifest["kind"] == "MutatingWebhookConfiguration":
            manifest["webhooks"][0]["clientConfig"] = {"url": f"https://127.0.0.1:{port}/webhook"}
        elif manifest["kind"] not in (*wanted, "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"):
            continue
        await cluster.admin.apply(manifest, manager="helm", force=True)
    await cluster.add_node("gpu01")
    wanted_node = gpu_node("gpu01")
    status = wanted_node.pop("status")
    for condition in status["conditions"]:
        condition |= {"message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    wanted_node["spec"]["config"]["name"] = "fractions"
    await cluster.admin.create(wanted_node)
    await cluster.admin.patch(manifests.GPU_NODE, "gpu01", {"status": status}, subresource="status")


async def test_from_creation_to_decision(running: Running) -> None:
    """Admitted and filled in, placed, bound with its decision; then its part is taken."""
    admin = running.cluster.admin
    asked = await admin.create(pod("a", {**hami(mem=9000), "image": "x"}))
    spec = asked["spec"]
    assert spec["schedulerName"] == names.SCHEDULER
    assert spec["containers"][0]["resources"]["limits"] == {names.RESOURCE_GPU: "1", names.RESOURCE_GPUMEM: "9k"}
    assert {"key": names.TAINT_FRACTIONS, "operator": "Exists", "effect": "NoSchedule"} in spec["tolerations"]

    assert (await running.ask("filter", {"Pod": asked, "NodeNames": ["gpu01"]}))["NodeNames"] == ["gpu01"]
    call = {"PodName": "a", "PodNamespace": "default", "PodUID": asked["metadata"]["uid"], "Node": "gpu01"}
    assert await running.ask("bind", call) == {"Error": ""}

    bound = await admin.get(manifests.POD, "a", "default")
    assert bound is not None
    assert bound["spec"]["nodeName"] == "gpu01"
    decision = Decision.from_annotation(bound["metadata"]["annotations"][names.ANNOTATION_DECISION])
    assert [grant.memory_mib for (grant,) in decision.containers.values()] == [9000]
    more = await admin.create(pod("b", {**hami(gpus=2, mem=9000), "image": "x"}))
    failed = (await running.ask("filter", {"Pod": more, "NodeNames": ["gpu01"]}))["FailedNodes"]
    assert failed == {"gpu01": "1/2 CardInsufficientMemory, 1/2 AllocatedCardsInsufficientRequest"}


@pytest.mark.parametrize(
    ("asked", "code", "says"),
    [
        pytest.param(
            pod("a", {**hami(gpus=1, percent=101), "image": "x"}),
            422,
            "spec.containers[0].resources.limits[nvidia.com/gpumem-percentage]: 101 is more than all; write 1 to 100",
            id="a percentage over 100",
        ),
        pytest.param(
            pod("a", {**hami(gpus=1, mem=1), "image": "x"}, nodeName="gpu01"), 403, "nodeSelector", id="nodeName"
        ),
        pytest.param(
            pod("a", {"name": "main", "image": "x"}, annotations={names.ANNOTATION_DECISION: "{}"}),
            403,
            "written by the scheduler of fractions alone",
            id="a forged decision, which a policy refuses where the webhook is not asked",
        ),
    ],
)
async def test_refused_at_creation(running: Running, asked: dict[str, Any], code: int, says: str) -> None:
    """People read what to write instead."""
    with pytest.raises(ClusterRefused) as refused:
        await running.cluster.admin.create(asked)

    assert refused.value.code == code
    assert says in str(refused.value)


async def test_other_pods_are_not_touched(running: Running) -> None:
    """Neither filled in nor slowed down, also while the scheduler is away."""
    created = await running.cluster.admin.create(pod("plain", {"name": "main", "image": "x"}))

    assert created["spec"]["schedulerName"] == "default-scheduler"


async def test_a_label_alone(running: Running) -> None:
    """The webhook is asked about it, which is where the warning comes from that it asks for nothing."""
    labels = {names.RESOURCE_ALIYUN_COUNT: "2"}
    await running.cluster.admin.create(pod("labelled", {"name": "main", "image": "x"}, labels=labels))

    _, figures = await running.ask("metrics", None)
    assert 'gpushare_scheduler_admissions_total{verdict="unchanged"} 1.0' in figures
