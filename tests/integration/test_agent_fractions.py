"""The agent of a node that gives out fractions, between a kubelet and an API server, with the rights that its roles give."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from gpushare import names
from gpushare.agent import devices, holding
from gpushare.agent.fractions import answering, running
from gpushare.domain import manifests
from gpushare.domain.fractions import Decision, Dialect, Grant
from gpushare.kubelet.values import CallFailed, ContainerDevices
from gpushare.nvml.port import Event
from support.agent_clusters import ALIYUN, HAMI, WAIT_SECONDS, AgentCluster, held_by
from support.agents import GPU, SHARED, Machine, machine, until_logged

MEM, COUNT = names.RESOURCE_ALIYUN_MEM, names.RESOURCE_ALIYUN_COUNT


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "WAIT_SECONDS", 0.05)
    monkeypatch.setattr(holding, "POLL_SECONDS", 0.5)
    monkeypatch.setattr(running, "LOOK_SECONDS", 0.1)


@pytest.fixture
def node() -> Iterator[Machine]:
    with machine() as made:
        made.kubelet.start()
        yield made


@pytest.fixture
async def cluster(node: Machine, tmp_path: Path) -> AsyncIterator[AgentCluster]:
    async with AgentCluster.running(node, tmp_path) as cluster:
        yield cluster


async def test_modes(cluster: AgentCluster, node: Machine) -> None:
    """Each shows its own resources and 0 of the other's; the status says which one is in force."""
    await cluster.assign(HAMI)
    async with cluster.agent():
        hami = await cluster.is_serving(HAMI, gpu=40)
        await cluster.assign(ALIYUN)
        aliyun = await cluster.is_serving(ALIYUN, mem=60, count=4)
        await cluster.assign("version: v1\n")
        await cluster.until(lambda status: "fractions" not in status)
        await node.kubelet.until(lambda: (node.kubelet.total(GPU), node.kubelet.total(MEM)) == (4, 0))

    assert hami["fractions"]["dialect"] == "hami"
    assert hami["fractions"]["slots"] == 10
    assert aliyun["fractions"]["unitMiB"] == 1024


async def test_scheduler_is_told_of_renamed_shares(cluster: AgentCluster, node: Machine) -> None:
    """Who holds a GPU by a name that is offered no longer stays in the status: nobody else would tell the scheduler."""
    renamed = (
        "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, rename: nvidia.com/gpu.shared, replicas: 2}]}}"
    )
    ids = (f"{node.uuids()[1]}::0",)
    node.holders.append(ContainerDevices(namespace="n", pod="old", container="main", resource=SHARED, ids=ids))
    await cluster.assign(renamed)
    async with cluster.agent():
        await cluster.until(lambda status: status.get("allocations"))
        await cluster.assign(HAMI)
        status = await cluster.is_serving(HAMI, gpu=40)

    held = {"namespace": "n", "pod": "old", "container": "main", "resource": SHARED, "shares": [0]}
    assert status["allocations"] == [{"index": 1, "containers": [held]}]


async def test_scheduler_is_told_of_links(cluster: AgentCluster) -> None:
    """How close GPUs are stands in the list of devices once links are read, where parts of GPUs are given out."""
    await cluster.assign(HAMI)
    async with cluster.agent():
        await cluster.until(lambda status: all("closeness" in each for each in status.get("devices", [{}])))
        await cluster.assign("version: v1\n")
        shown = await cluster.until(lambda status: "fractions" not in status)

    assert not any("closeness" in each for each in shown["devices"])


async def test_replicas_fly_together(cluster: AgentCluster, node: Machine) -> None:
    """Pods that may be taken for each other are let in in any order; each is confirmed where it is."""
    await cluster.assign(HAMI)
    gpus = node.uuids()
    async with cluster.agent():
        await cluster.is_serving(HAMI, gpu=40)
        uids = [await cluster.bind(f"p{index}", {"main": (Grant(gpus[index], 3000, 30),)}) for index in range(4)]
        answers = [await cluster.let_in(f"p{index}", "main", 1) for index in (2, 0, 3, 1)]
        status = await cluster.until(lambda status: held_by(status).keys() == set(uids))

    assert {answer.envs["NVIDIA_VISIBLE_DEVICES"] for answer in answers} == set(gpus)
    assert {answer.envs["CUDA_DEVICE_MEMORY_LIMIT_0"] for answer in answers} == {"3000m"}
    assert sorted(held_by(status).values()) == [[(index, "main", 3000, 30)] for index in range(4)]


async def test_one_pod_of_different_containers(cluster: AgentCluster, node: Machine) -> None:
    """Each container gets what is its own, and no more is let in for it."""
    await cluster.assign(HAMI)
    one, two, *_ = node.uuids()
    async with cluster.agent():
        await cluster.is_serving(HAMI, gpu=40)
        uid = await cluster.bind("a", {"big": (Grant(one, 8000, 50),), "pair": (Grant(one, 1000), Grant(two, 1000))})
        big = await cluster.let_in("a", "big", 1)
        pair = await cluster.let_in("a", "pair", 2)
        status = await cluster.until(lambda status: len(held_by(status).get(uid, ())) == 3)
        with pytest.raises(CallFailed, match="no pod that was placed on this node waits"):
            await cluster.let_in("b", "main", 1)

    assert (big.envs["NVIDIA_VISIBLE_DEVICES"], big.envs["CUDA_DEVICE_SM_LIMIT"]) == (one, "50")
    assert set(pair.envs["NVIDIA_VISIBLE_DEVICES"].split(",")) == {one, two}
    assert held_by(status)[uid] == [(0, "big", 8000, 50), (0, "pair", 1000, 0), (1, "pair", 1000, 0)]


async def test_units(cluster: AgentCluster, node: Machine) -> None:
    """All of a request on the GPU that was decided on, as the environment says too."""
    await cluster.assign(ALIYUN)
    gpus = node.uuids()
    async with cluster.agent():
        await cluster.is_serving(ALIYUN, mem=60, count=4)
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


async def test_kubelet_chooses_otherwise(cluster: AgentCluster, node: Machine) -> None:
    """The status says where the pod really is, and an Event on the pod says that it was to be elsewhere."""
    await cluster.assign(HAMI)
    gpus = node.uuids()
    async with cluster.agent():
        await cluster.is_serving(HAMI, gpu=40)
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


async def test_pod_that_is_deleted_by_force_before_the_kubelet_asks_for_it(
    cluster: AgentCluster, node: Machine
) -> None:
    """The kubelet, which has not heard of it, gets what the next pod waits for; that one gets it all the same."""
    await cluster.assign(HAMI)
    gpus = node.uuids()
    async with cluster.agent():
        await cluster.is_serving(HAMI, gpu=40)
        await cluster.bind("gone", {"main": (Grant(gpus[0], 3000),)})
        await cluster.admin.delete(manifests.POD, "gone", "default", grace_seconds=0)
        uid = await cluster.bind("next", {"main": (Grant(gpus[1], 1000),)}, shape="t")
        await cluster.let_in("gone", "main", 1)
        answer = await cluster.let_in("next", "main", 1)
        status = await cluster.until(lambda status: uid in held_by(status))

    assert answer.envs["NVIDIA_VISIBLE_DEVICES"] == gpus[1]
    assert held_by(status) == {uid: [(1, "main", 1000, 0)]}


async def test_agent_restarts_between_binding_and_allocate(cluster: AgentCluster, node: Machine) -> None:
    """Decisions are on the pods: the next agent goes on with them, and knows who has landed from the kubelet."""
    await cluster.assign(HAMI)
    gpus = node.uuids()
    async with cluster.agent():
        await cluster.is_serving(HAMI, gpu=40)
        first = await cluster.bind("a", {"main": (Grant(gpus[0], 3000),)})
        second = await cluster.bind("b", {"main": (Grant(gpus[1], 3000),)})
        await cluster.let_in("a", "main", 1)
    async with cluster.agent():
        await node.kubelet.until(lambda: node.kubelet.registered().count(GPU) == 2)
        answer = await cluster.let_in("b", "main", 1)
        status = await cluster.until(lambda status: len(held_by(status)) == 2)

    assert answer.envs["NVIDIA_VISIBLE_DEVICES"] == gpus[1]
    assert held_by(status) == {first: [(0, "main", 3000, 0)], second: [(1, "main", 3000, 0)]}


async def test_agent_starts_before_the_kubelet_tells_who_holds_what(
    cluster: AgentCluster, node: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile nobody is let in, and what was reported stays; a pod that has its GPU is never taken for its twin."""
    monkeypatch.setattr(holding, "AGAIN_SECONDS", 0.05)
    await cluster.assign(HAMI)
    gpus = node.uuids()
    async with cluster.agent():
        await cluster.is_serving(HAMI, gpu=40)
        first = await cluster.bind("a", {"main": (Grant(gpus[0], 3000),)})
        second = await cluster.bind("b", {"main": (Grant(gpus[1], 3000),)})
        await cluster.let_in("a", "main", 1)
        before = await cluster.until(held_by)
    node.hide_holders()
    await cluster.assign(f"{HAMI}# again\n")
    async with cluster.agent():
        status = await cluster.is_serving(f"{HAMI}# again\n", gpu=40)
        await node.kubelet.until(lambda: node.kubelet.registered().count(GPU) == 2)
        monkeypatch.setattr(answering, "PATIENCE_SECONDS", 0.05)
        with pytest.raises(CallFailed, match="the kubelet does not tell who holds which devices"):
            await cluster.let_in("b", "main", 1)
        monkeypatch.setattr(answering, "PATIENCE_SECONDS", 8.0)
        node.tell_holders()
        answer = await cluster.let_in("b", "main", 1)
        after = await cluster.until(lambda status: len(held_by(status)) == 2)

    assert held_by(status) == held_by(before) == {first: [(0, "main", 3000, 0)]}
    assert answer.envs["NVIDIA_VISIBLE_DEVICES"] == gpus[1]
    assert held_by(after) == {first: [(0, "main", 3000, 0)], second: [(1, "main", 3000, 0)]}


async def test_fractions_end_before_the_kubelet_tells_who_holds_what(
    cluster: AgentCluster, node: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that does not know who has parts gives out no whole GPUs; once it knows, it says whose they are."""
    monkeypatch.setattr(holding, "POLL_SECONDS", 0.1)
    await cluster.assign(HAMI)
    async with cluster.agent():
        await cluster.is_serving(HAMI, gpu=40)
        await cluster.bind("a", {"main": (Grant(node.uuids()[0], 3000),)})
        await cluster.let_in("a", "main", 1)
        await cluster.until(held_by)
    node.hide_holders()
    await cluster.assign("version: v1\n")
    async with cluster.agent():
        await cluster.until(lambda status: "the kubelet does not tell by whom" in str(status["conditions"]))
        node.tell_holders()
        await cluster.until(lambda status: "in use by default/a" in str(status["conditions"]))

    assert node.kubelet.total(GPU) == 40


async def test_gpu_vanishes_between_decision_and_allocate(cluster: AgentCluster, node: Machine) -> None:
    """The pod is refused with the reason rather than given another GPU."""
    await cluster.assign(HAMI)
    gpus = node.uuids()
    async with cluster.agent():
        await cluster.is_serving(HAMI, gpu=40)
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
async def test_not_placed(cluster: AgentCluster, node: Machine, forge: str, message: str) -> None:
    """A pod that tolerates the taint, or brings its own decision, gets nothing; those after it are not kept from theirs."""
    await cluster.assign(HAMI)
    async with cluster.agent():
        await cluster.is_serving(HAMI, gpu=40)
        await cluster.bind("a", {"main": (Grant("GPU-1", 1),)}, forge=forge)
        with pytest.raises(CallFailed, match=message):
            await cluster.let_in("a", "main", 1)
        # As the kubelet leaves it.
        failed = {"status": {"phase": "Failed", "reason": "UnexpectedAdmissionError"}}
        await cluster.admin.patch(manifests.POD, "a", failed, "default", subresource="status")
        await cluster.bind("b", {"main": (Grant(node.uuids()[0], 3000),)})
        await cluster.let_in("b", "main", 1)


async def test_library_is_missing(cluster: AgentCluster, node: Machine) -> None:
    """No pod is let in without what isolates; once it is there, containers get it."""
    text = "gpushare: {fractions: hami, isolation: hami-core}\n"
    await cluster.assign(text)
    async with cluster.agent():
        status = await cluster.is_serving(text)
        await cluster.until(lambda status: any("is not at /usr/local" in p["message"] for p in status["problems"]))
        path = node.root / "usr/local/vgpu/libvgpu.so"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"\x7fELF")
        await cluster.is_serving(text, gpu=40)
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


async def test_agent_that_may_not_see_pods(cluster: AgentCluster) -> None:
    """It says so to whoever asks, and lets nobody in."""
    await cluster.admin.delete(manifests.CLUSTER_ROLE_BINDING, names.CLUSTER_ROLE_FRACTIONS)
    await cluster.assign(HAMI)
    async with cluster.agent():
        await cluster.is_serving(HAMI, gpu=40)
        with pytest.raises(CallFailed, match=r"the pods of this node cannot be listed: .*pods"):
            await cluster.let_in("a", "main", 1)
