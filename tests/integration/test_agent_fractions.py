"""The agent of a node that gives out fractions, between a kubelet and an API server, with the rights that its roles give."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpushare import data, names
from gpushare.agent import devices, holding
from gpushare.agent.fractions import running
from gpushare.domain import gpunode, manifests
from gpushare.domain.fractions import Decision, Dialect, Grant
from gpushare.domain.gpunode import Config, ConfigReason
from gpushare.kube.credentials import from_kubeconfig
from gpushare.kube.lean import LeanCluster
from gpushare.kubelet.values import CallFailed, ContainerDevices, PreferenceRequest
from gpushare.nvml.port import Event
from gpushare.render.templates import render
from gpushare.sandbox.apiserver.server import ApiServer, Settings
from gpushare.sharing.responses import ContainerAnswer
from support.agents import GPU, Machine, machine, until_logged
from support.bound_pods import asking

NODE = "gpu01"
MEM, COUNT = names.RESOURCE_ALIYUN_MEM, names.RESOURCE_ALIYUN_COUNT
ACCOUNT = "system:serviceaccount:gpu-operator:nvidia-device-plugin"
GROUPS = ("system:serviceaccounts", "system:serviceaccounts:gpu-operator", "system:authenticated")
SECRETS = "var/run/secrets/kubernetes.io/serviceaccount"
WAIT_SECONDS = 15.0
HAMI = "gpushare: {fractions: hami}\n"
ALIYUN = "gpushare: {fractions: aliyun}\n"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "WAIT_SECONDS", 0.05)
    monkeypatch.setattr(holding, "POLL_SECONDS", 0.5)
    monkeypatch.setattr(running, "LOOK_SECONDS", 0.1)


class Cluster:
    """A cluster with one node: whoever stands for scheduler, controller and kubelet is the test."""

    def __init__(self, server: ApiServer, admin: LeanCluster, machine: Machine) -> None:
        self.server = server
        self.admin = admin
        self.machine = machine
        self.node_uid = ""

    async def install(self) -> None:
        found = yaml.safe_load((data.path_of("crds") / "gpushare.dev_gpunodes.yaml").read_text())
        rights = [*render("fractions", {"namespace": "gpu-operator"})]
        role = yaml.safe_load((data.path_of("templates") / "device-plugin/0210-cluster-role.yaml.j2").read_text())
        binding = {
            **rights[1],
            "metadata": {"name": "agent"},
            "roleRef": {**rights[1]["roleRef"], "name": role["metadata"]["name"]},
        }
        for manifest in (found, role, binding, *rights):
            await self.admin.create(manifest)
        node = await self.admin.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
        self.node_uid = node["metadata"]["uid"]

    async def assign(self, content: str) -> None:
        config = Config(reason=ConfigReason.HAMI, title="gpu=on", content=content)
        manifest = gpunode.assignment_manifest(NODE, self.node_uid, config)
        await self.admin.apply(manifest, manager=names.MANAGER_CONTROLLER, force=True)

    async def status(self) -> dict[str, Any]:
        found = await self.admin.get(manifests.GPU_NODE, NODE)
        return (found or {}).get("status") or {}

    async def until(self, expected: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        status: dict[str, Any] = {}
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                while not expected(status := await self.status()):  # noqa: ASYNC110 - as a person would
                    await asyncio.sleep(0.02)
        except TimeoutError:
            pytest.fail(f"not seen: {status}")
        return status

    @contextlib.asynccontextmanager
    async def agent(self) -> AsyncIterator[None]:
        folder = self.machine.root / SECRETS
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "ca.crt").write_text(self.server.ca_pem)
        (folder / "token").write_text(self.server.token(ACCOUNT, GROUPS))
        environ = {
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(self.server.port),
            "NODE_NAME": NODE,
            "MPS_ROOT": "/run/nvidia/mps",
        }
        async with self.machine.agent(environ=environ):
            yield

    async def bind(
        self,
        name: str,
        containers: Mapping[str, tuple[Grant, ...]],
        *,
        shape: str = "s",
        dialect: Dialect = Dialect.HAMI,
        forge: str | None = None,
    ) -> str:
        """Creates a pod and binds it with the scheduler's decision in the annotations of the Binding; gives its uid."""
        asked = [asking(key, sum(one.units or 1 for one in grants), dialect) for key, grants in containers.items()]
        pod = await self.admin.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"containers": asked},
            }
        )
        uid = pod["metadata"]["uid"]
        decision = Decision(pod_uid=uid, dialect=dialect, shape=shape, containers=containers)
        text = decision.to_annotation() if forge is None else forge
        await self.admin.create(
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {
                    "name": name,
                    "namespace": "default",
                    "uid": uid,
                    "annotations": {names.ANNOTATION_DECISION: text} if text else {},
                },
                "target": {"kind": "Node", "name": NODE},
            },
            subresource="binding",
            name=name,
        )
        return uid

    async def let_in(
        self, name: str, container: str, size: int, resource: str = GPU, choose: tuple[str, ...] = ()
    ) -> ContainerAnswer:
        """What a kubelet does for one container; `choose`: it does not ask for a preference, or does not heed it."""
        client = self.machine.kubelet.clients[resource]
        taken = {id_ for holder in self.machine.holders for id_ in holder.ids}
        free = tuple(id_ for id_ in self.machine.kubelet.ids(resource) if id_ not in taken)
        request = PreferenceRequest(available=free, size=size)
        ids = choose or tuple((await asyncio.to_thread(client.preferred, [request]))[0]) or free[:size]
        [answer] = await asyncio.to_thread(client.allocate, [list(ids)])
        self.machine.holders.append(
            ContainerDevices(namespace="default", pod=name, container=container, resource=resource, ids=ids)
        )
        return answer


@pytest.fixture
def node() -> Iterator[Machine]:
    with machine() as made:
        made.kubelet.start()
        yield made


@pytest.fixture
async def cluster(node: Machine, tmp_path: Path) -> AsyncIterator[Cluster]:
    server = await ApiServer.start(Settings())
    path = tmp_path / "admin.yaml"
    path.write_text(yaml.safe_dump(server.kubeconfig("admin")))
    admin = LeanCluster(from_kubeconfig(path))
    made = Cluster(server, admin, node)
    try:
        await made.install()
        yield made
    finally:
        await admin.close()
        await server.stop()


def held_by(status: Mapping[str, Any]) -> dict[str, list[tuple[int, str, int, int]]]:
    """Index of the GPU, container, MiB and percent, by uid of the pod."""
    found: dict[str, list[tuple[int, str, int, int]]] = {}
    for gpu in status.get("allocations", ()):
        for one in gpu["containers"]:
            if "podUID" in one:
                item = (gpu["index"], one["container"], one.get("memoryMiB", 0), one.get("cores", 0))
                found.setdefault(one["podUID"], []).append(item)
    return found


async def is_serving(cluster: Cluster, text: str, **totals: int) -> dict[str, Any]:
    """Waits until the mode is in force and the kubelet has the lists."""
    status = await cluster.until(lambda status: status.get("appliedRevision") == gpunode.revision_of(text))
    kubelet = cluster.machine.kubelet
    wanted = {GPU: totals.get("gpu", 0), MEM: totals.get("mem", 0), COUNT: totals.get("count", 0)}
    await kubelet.until(lambda: all(kubelet.total(name) == total for name, total in wanted.items()))
    return status


async def test_modes(cluster: Cluster, node: Machine) -> None:
    """Each shows its own resources and 0 of the other's; the status says which one is in force."""
    await cluster.assign(HAMI)
    async with cluster.agent():
        hami = await is_serving(cluster, HAMI, gpu=40)
        await cluster.assign(ALIYUN)
        aliyun = await is_serving(cluster, ALIYUN, mem=60, count=4)
        await cluster.assign("version: v1\n")
        await cluster.until(lambda status: "fractions" not in status)
        await node.kubelet.until(lambda: (node.kubelet.total(GPU), node.kubelet.total(MEM)) == (4, 0))

    assert hami["fractions"]["dialect"] == "hami"
    assert hami["fractions"]["slots"] == 10
    assert aliyun["fractions"]["unitMiB"] == 1024


async def test_scheduler_is_told_of_links(cluster: Cluster) -> None:
    """How close GPUs are stands in the list of devices once links are read, where parts of GPUs are given out."""
    await cluster.assign(HAMI)
    async with cluster.agent():
        await cluster.until(lambda status: all("closeness" in each for each in status.get("devices", [{}])))
        await cluster.assign("version: v1\n")
        shown = await cluster.until(lambda status: "fractions" not in status)

    assert not any("closeness" in each for each in shown["devices"])


async def test_replicas_fly_together(cluster: Cluster, node: Machine) -> None:
    """Pods that may be taken for each other are let in in any order; each is confirmed where it is."""
    await cluster.assign(HAMI)
    gpus = node.uuids()
    async with cluster.agent():
        await is_serving(cluster, HAMI, gpu=40)
        uids = [await cluster.bind(f"p{index}", {"main": (Grant(gpus[index], 3000, 30),)}) for index in range(4)]
        answers = [await cluster.let_in(f"p{index}", "main", 1) for index in (2, 0, 3, 1)]
        status = await cluster.until(lambda status: held_by(status).keys() == set(uids))

    assert {answer.envs["NVIDIA_VISIBLE_DEVICES"] for answer in answers} == set(gpus)
    assert {answer.envs["CUDA_DEVICE_MEMORY_LIMIT_0"] for answer in answers} == {"3000m"}
    assert sorted(held_by(status).values()) == [[(index, "main", 3000, 30)] for index in range(4)]


async def test_one_pod_of_different_containers(cluster: Cluster, node: Machine) -> None:
    """Each container gets what is its own, and no more is let in for it."""
    await cluster.assign(HAMI)
    one, two, *_ = node.uuids()
    async with cluster.agent():
        await is_serving(cluster, HAMI, gpu=40)
        uid = await cluster.bind("a", {"big": (Grant(one, 8000, 50),), "pair": (Grant(one, 1000), Grant(two, 1000))})
        big = await cluster.let_in("a", "big", 1)
        pair = await cluster.let_in("a", "pair", 2)
        status = await cluster.until(lambda status: len(held_by(status).get(uid, ())) == 3)
        with pytest.raises(CallFailed, match="no pod that was placed on this node waits"):
            await cluster.let_in("b", "main", 1)

    assert (big.envs["NVIDIA_VISIBLE_DEVICES"], big.envs["CUDA_DEVICE_SM_LIMIT"]) == (one, "50")
    assert set(pair.envs["NVIDIA_VISIBLE_DEVICES"].split(",")) == {one, two}
    assert held_by(status)[uid] == [(0, "big", 8000, 50), (0, "pair", 1000, 0), (1, "pair", 1000, 0)]


async def test_units(cluster: Cluster, node: Machine) -> None:
    """All of a request on the GPU that was decided on, as the environment says too."""
    await cluster.assign(ALIYUN)
    gpus = node.uuids()
    async with cluster.agent():
        await is_serving(cluster, ALIYUN, mem=60, count=4)
        uid = await cluster.bind("a", {"main": (Grant(gpus[2], 4096, 0, 4),)}, dialect=Dialect.ALIYUN)
        answer = await cluster.let_in("a", "main", 4, MEM)
        status = await cluster.until(lambda status: held_by(status).get(uid))

    assert answer.envs == {
        "NVIDIA_VISIBLE_DEVICES": gpus[2],
        "ALIYUN_COM_GPU_MEM_IDX": "2",
        "ALIYUN_COM_GPU_MEM_POD": "4",
        "ALIYUN_COM_GPU_MEM_CONTAINER": "4",
        "ALIYUN_COM_GPU_MEM_DEV": "15",
        "CGPU_DISABLE": "true",
    }
    assert held_by(status) == {uid: [(2, "main", 4096, 0)]}


async def test_kubelet_chooses_otherwise(cluster: Cluster, node: Machine) -> None:
    """The status says where the pod really is, and an Event on the pod says that it was to be elsewhere."""
    await cluster.assign(HAMI)
    gpus = node.uuids()
    async with cluster.agent():
        await is_serving(cluster, HAMI, gpu=40)
        uid = await cluster.bind("a", {"main": (Grant(gpus[0], 3000),)})
        answer = await cluster.let_in("a", "main", 1, choose=(f"{gpus[3]}::7",))
        status = await cluster.until(lambda status: held_by(status).get(uid))
        async with asyncio.timeout(WAIT_SECONDS):
            while not (events := (await cluster.admin.list(manifests.EVENT, "default")).items):  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    assert answer.envs["NVIDIA_VISIBLE_DEVICES"] == gpus[3]
    assert held_by(status) == {uid: [(3, "main", 3000, 0)]}
    assert (events[0]["reason"], events[0]["involvedObject"]["name"]) == ("OtherGPU", "a")
    assert f"has {gpus[3]}, which the kubelet chose, and not {gpus[0]}" in events[0]["message"]


async def test_agent_restarts_between_binding_and_allocate(cluster: Cluster, node: Machine) -> None:
    """Decisions are on the pods: the next agent goes on with them, and knows who has landed from the kubelet."""
    await cluster.assign(HAMI)
    gpus = node.uuids()
    async with cluster.agent():
        await is_serving(cluster, HAMI, gpu=40)
        first = await cluster.bind("a", {"main": (Grant(gpus[0], 3000),)})
        second = await cluster.bind("b", {"main": (Grant(gpus[1], 3000),)})
        await cluster.let_in("a", "main", 1)
    async with cluster.agent():
        await node.kubelet.until(lambda: node.kubelet.registered().count(GPU) == 2)
        answer = await cluster.let_in("b", "main", 1)
        status = await cluster.until(lambda status: len(held_by(status)) == 2)

    assert answer.envs["NVIDIA_VISIBLE_DEVICES"] == gpus[1]
    assert held_by(status) == {first: [(0, "main", 3000, 0)], second: [(1, "main", 3000, 0)]}


async def test_gpu_vanishes_between_decision_and_allocate(cluster: Cluster, node: Machine) -> None:
    """The pod is refused with the reason rather than given another GPU."""
    await cluster.assign(HAMI)
    gpus = node.uuids()
    async with cluster.agent():
        await is_serving(cluster, HAMI, gpu=40)
        await cluster.bind("a", {"main": (Grant(gpus[1], 3000),)})
        node.nvml.inject(Event(uuid=gpus[1], xid=79))
        await node.kubelet.until(lambda: len(node.kubelet.ids(GPU)) == 30)
        with pytest.raises(CallFailed, match=f"was given {gpus[1]}, which this node does not have any more"):
            await cluster.let_in("a", "main", 1)


@pytest.mark.parametrize(
    ("forge", "message"),
    [
        pytest.param("", "default/a is not let in: no scheduler of fractions has placed it", id="plain"),
        pytest.param("{}", "default/a is not let in: not a decision of the scheduler", id="malformed"),
        pytest.param(
            Decision(
                pod_uid="somebody", dialect=Dialect.HAMI, shape="s", containers={"main": (Grant("GPU-1", 1),)}
            ).to_annotation(),
            "is that of another pod",
            id="forged",
        ),
    ],
)
async def test_not_placed(cluster: Cluster, node: Machine, forge: str, message: str) -> None:
    """A pod that tolerates the taint, or brings its own decision, gets nothing; those after it are not kept from theirs."""
    await cluster.assign(HAMI)
    async with cluster.agent():
        await is_serving(cluster, HAMI, gpu=40)
        await cluster.bind("a", {"main": (Grant("GPU-1", 1),)}, forge=forge)
        with pytest.raises(CallFailed, match=message):
            await cluster.let_in("a", "main", 1)
        # As the kubelet leaves it.
        failed = {"status": {"phase": "Failed", "reason": "UnexpectedAdmissionError"}}
        await cluster.admin.patch(manifests.POD, "a", failed, "default", subresource="status")
        await cluster.bind("b", {"main": (Grant(node.uuids()[0], 3000),)})
        await cluster.let_in("b", "main", 1)


async def test_library_is_missing(cluster: Cluster, node: Machine) -> None:
    """No pod is let in without what isolates; once it is there, containers get it."""
    text = "gpushare: {fractions: hami, isolation: hami-core}\n"
    await cluster.assign(text)
    async with cluster.agent():
        status = await is_serving(cluster, text)
        await cluster.until(lambda status: any("is not at /usr/local" in p["message"] for p in status["problems"]))
        path = node.root / "usr/local/vgpu/libvgpu.so"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"\x7fELF")
        await is_serving(cluster, text, gpu=40)
        await cluster.bind("a", {"main": (Grant(node.uuids()[0], 3000, 30),)})
        answer = await cluster.let_in("a", "main", 1)

    assert status["fractions"]["isolation"] == "hami-core"
    assert [mount.container_path for mount in answer.mounts] == [
        "/usr/local/vgpu",
        "/usr/local/vgpu/libvgpu.so",
        "/tmp/vgpulock",
        "/etc/ld.so.preload",
    ]
    assert all((node.root / mount.host_path.lstrip("/")).exists() for mount in answer.mounts)


async def test_without_a_cluster(node: Machine, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody could say what was decided: the node shows 0 rather than fail every pod."""
    caplog.set_level("INFO", "agent")
    node.configure(HAMI)
    async with node.with_config():
        await node.kubelet.until(lambda: node.kubelet.total(GPU) == 0)
        await until_logged(caplog, "configuration in force")

    [record] = [record for record in caplog.records if record.message == "configuration in force"]
    assert "this agent knows no cluster" in str(record.__dict__["warnings"])


async def test_agent_that_may_not_see_pods(cluster: Cluster) -> None:
    """It says so to whoever asks, and lets nobody in."""
    await cluster.admin.delete(manifests.CLUSTER_ROLE_BINDING, names.CLUSTER_ROLE_FRACTIONS)
    await cluster.assign(HAMI)
    async with cluster.agent():
        await is_serving(cluster, HAMI, gpu=40)
        with pytest.raises(CallFailed, match=r"the pods of this node cannot be listed: .*pods"):
            await cluster.let_in("a", "main", 1)
