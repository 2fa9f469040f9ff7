"""What goes wrong with other schedulers of GPUs when things happen at once or fail half-way; numbers as in docs/fractions.md."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.fractions import Decision, Dialect, Grant
from gpushare.errors import ClusterRefused, ClusterUnavailable, Conflict
from gpushare.scheduler.books import Stage
from support.placements import aliyun, device, hami
from support.schedulers import ALIYUN, Fractions, Replica

SMALL = hami(gpus=1, mem=1000)


@pytest.fixture
async def fractions() -> Fractions:
    found = Fractions()
    await found.add_node("n1")
    return found


@pytest.fixture
async def replica(fractions: Fractions) -> AsyncIterator[Replica]:
    async with fractions.replica(seconds=60.0) as running:
        yield running


def free_on(replica: Replica, node: str = "n1") -> list[int]:
    state = replica.books.nodes[node]
    return [gpu.traits.memory_mib - use.memory_mib for gpu, use in zip(state.gpus, state.uses, strict=True)]


async def until_waiting(replica: Replica, count: int = 1) -> None:
    await replica.until(lambda: replica.books.flights.counts[1] == count)


# R1: which pod a request for devices is for.


async def test_pods_that_can_be_told_apart_wait_for_each_other(fractions: Fractions, replica: Replica) -> None:
    """R1: of pods that differ, one at a time is on its way to a node; replicas of one workload go together."""
    first = await fractions.add_pod("first", SMALL)
    twin = await fractions.add_pod("twin", SMALL)
    other = await fractions.add_pod("other", hami(gpus=1, mem=2000))

    assert await replica.bind(first, "n1") == ""
    assert await replica.bind(twin, "n1") == ""
    waiting = asyncio.create_task(replica.bind(other, "n1"))
    await until_waiting(replica)
    await fractions.confirm("first")
    await fractions.start("twin")

    assert await waiting == ""


async def test_nobody_overtakes(fractions: Fractions, replica: Replica) -> None:
    """R1: replicas that could go along do not keep another pod waiting for ever."""
    pods = [await fractions.add_pod(name, SMALL) for name in ("first", "late", "later")]
    other = await fractions.add_pod("other", hami(gpus=1, mem=2000))
    assert await replica.bind(pods[0], "n1") == ""
    waiting = asyncio.create_task(replica.bind(other, "n1"))
    await until_waiting(replica)
    behind = asyncio.gather(replica.bind(pods[1], "n1"), replica.bind(pods[2], "n1"))
    await until_waiting(replica, 3)

    await fractions.start("first")
    assert await waiting == ""
    assert fractions.pod("late")["spec"].get("nodeName") is None
    await fractions.start("other")
    assert await behind == ["", ""]


async def test_waiting_ends_in_time(fractions: Fractions) -> None:
    """R1: kube-scheduler gets an answer before it hangs up, and nothing stays reserved."""
    async with fractions.replica(seconds=5.0) as replica:
        assert await replica.bind(await fractions.add_pod("first", SMALL), "n1") == ""
        other = await fractions.add_pod("other", hami(gpus=1, mem=2000))

        assert await replica.bind(other, "n1") == (
            "n1 is still starting other pods with GPUs, default/first; this one is tried again"
        )
        assert sorted(free_on(replica)) == [14360, 15360]
        assert "other" not in {placed.name for placed in replica.books.pods.values()}


async def test_containers_that_differ_go_alone(fractions: Fractions, replica: Replica) -> None:
    """R1, R2: not even twins go together where the containers of each differ; each container is decided by its name."""
    containers = (hami("a", 1, mem=1000), {"name": "none"}, hami("b", 1, mem=2000))
    first = await fractions.add_pod("first", *containers)
    twin = await fractions.add_pod("twin", *containers)
    assert await replica.bind(first, "n1") == ""
    assert {name: grants[0].memory_mib for name, grants in fractions.decision("first").containers.items()} == {
        "a": 1000,
        "b": 2000,
    }
    waiting = asyncio.create_task(replica.bind(twin, "n1"))
    await until_waiting(replica)
    await fractions.confirm("first")
    assert await waiting == ""


async def test_a_stranger_on_the_way_stops_others(fractions: Fractions, replica: Replica) -> None:
    """R1: a pod that somebody else has bound asks for devices too, so none of ours may be on its way with it."""
    await fractions.add_pod("stranger", SMALL, nodeName="n1")
    await replica.until(lambda: len(replica.books.pods) == 1)
    waiting = asyncio.create_task(replica.bind(await fractions.add_pod("a", SMALL), "n1"))
    await until_waiting(replica)

    failed = {"status": {"phase": "Failed", "reason": "UnexpectedAdmissionError"}}
    await fractions.cluster.patch(manifests.POD, "stranger", failed, "default", subresource="status")
    assert await waiting == ""
    assert replica.scheduler._telling.strangers == 1
    await fractions.cluster.until(lambda: bool(fractions.cluster.all(manifests.EVENT)))
    [event] = fractions.cluster.all(manifests.EVENT)
    assert (event["reason"], event["involvedObject"]["name"]) == ("GPUDecidedElsewhere", "stranger")


# R3 to R7: when memory is free, and of which GPU.


async def test_a_deletion_mark_frees_nothing(fractions: Fractions, replica: Replica) -> None:
    """R3: a pod holds its GPU until its containers have ended; then it is free at once."""
    await fractions.add_pod("a", hami(gpus=1, mem=15000))
    assert await replica.bind(fractions.pod("a"), "n1") == ""
    await fractions.confirm("a")
    await fractions.cluster.delete(manifests.POD, "a", "default")
    assert "deletionTimestamp" in fractions.pod("a")["metadata"]
    await fractions.add_pod("b", hami(gpus=2, mem=1000))

    assert (await replica.filter(fractions.pod("b"), "n1"))[0] == []
    succeeded = {"status": {"phase": "Succeeded"}}
    await fractions.cluster.patch(manifests.POD, "a", succeeded, "default", subresource="status")
    await replica.until(lambda: free_on(replica) == [15360, 15360])
    assert (await replica.filter(fractions.pod("b"), "n1"))[0] == ["n1"]


async def test_a_pod_of_the_same_name(fractions: Fractions, replica: Replica) -> None:
    """R4: pods are known by their uid, so that one that was made anew frees what the old one held, and no more."""
    old = await fractions.add_pod("a", hami(gpus=1, mem=15000))
    assert await replica.bind(old, "n1") == ""
    await fractions.confirm("a")
    await fractions.cluster.delete(manifests.POD, "a", "default", grace_seconds=0)
    new = await fractions.add_pod("a", hami(gpus=1, mem=4000))

    assert await replica.bind(old, "n1") == "the pod is gone"
    assert await replica.bind(new, "n1") == ""
    await replica.until(lambda: sorted(free_on(replica)) == [11360, 15360])


async def test_more_used_than_there_is(fractions: Fractions, replica: Replica) -> None:
    """R5, R6: a GPU that has become smaller than what is used of it is full, not endless; a GPU that comes is used."""
    assert await replica.bind(await fractions.add_pod("a", hami(gpus=1, mem=15000)), "n1") == ""
    await fractions.confirm("a")
    [(grant,)] = fractions.decision("a").containers.values()
    index = int(grant.uuid[-1])

    async def offer(*memory: int) -> None:
        devices = [device(number, mib, "n1") for number, mib in enumerate(memory)]
        await fractions.cluster.patch(manifests.GPU_NODE, "n1", {"status": {"devices": devices}}, subresource="status")
        await replica.until(lambda: len(replica.books.nodes["n1"].gpus) == len(memory))

    await offer(*(8000 if number == index else 500 for number in range(2)), 600)
    asked = await fractions.add_pod("b", hami(gpus=1, mem=1000))
    assert (await replica.filter(asked, "n1"))[1] == {"n1": "3/3 CardInsufficientMemory"}
    await offer(8000, 8000, 600, 40000)
    assert await replica.bind(asked, "n1") == ""


async def test_gpus_that_differ(fractions: Fractions, replica: Replica) -> None:
    """R10: each GPU has its own memory, on one node too."""
    devices = [device(0, 4000, "n1"), device(1, 40000, "n1")]
    await fractions.cluster.patch(manifests.GPU_NODE, "n1", {"status": {"devices": devices}}, subresource="status")
    await replica.until(lambda: replica.books.nodes["n1"].gpus[1].traits.memory_mib == 40000)

    assert await replica.bind(await fractions.add_pod("a", hami(gpus=1, mem=30000)), "n1") == ""
    assert [grant.uuid for (grant,) in fractions.decision("a").containers.values()] == ["GPU-n1-1"]


async def test_pods_of_a_node_that_is_not_there(fractions: Fractions, replica: Replica) -> None:
    """R7: they stop nothing, and count again when the node is back."""
    assert await replica.bind(await fractions.add_pod("a", hami(gpus=1, mem=15000)), "n1") == ""
    gone = fractions.cluster.now(manifests.GPU_NODE, "n1")
    await fractions.cluster.delete(manifests.GPU_NODE, "n1")
    await replica.until(lambda: not replica.books.nodes)
    asked = await fractions.add_pod("b", hami(gpus=2, mem=1000))
    assert await replica.bind(asked, "n1") == "nothing is known of the GPUs of n1"

    await fractions.cluster.create(gone)
    await replica.until(lambda: bool(replica.books.nodes))
    assert (await replica.filter(asked, "n1"))[1] == {
        "n1": "1/2 CardInsufficientMemory, 1/2 AllocatedCardsInsufficientRequest"
    }


# R8: a Binding that fails, or of which nobody hears.


@pytest.mark.parametrize(
    ("failure", "says"),
    [
        pytest.param(ClusterRefused("no", code=403), "the API server refuses the Binding", id="refused"),
        pytest.param(Conflict("changed"), "changed by somebody else", id="conflict"),
    ],
)
async def test_a_binding_that_fails(fractions: Fractions, replica: Replica, failure: Exception, says: str) -> None:
    """R8: nothing is left of it, neither in the pod nor in the books; the next attempt may go elsewhere."""
    asked = await fractions.add_pod("a", SMALL)
    fractions.cluster.refusals["bind Pod a"] = failure

    assert says in await replica.bind(asked, "n1")
    assert free_on(replica) == [15360, 15360]
    assert fractions.pod("a")["metadata"]["annotations"] == {}
    assert await replica.bind(asked, "n1") == ""


async def test_a_binding_without_an_answer(fractions: Fractions, replica: Replica) -> None:
    """R8: it may have been made, so its GPU stays reserved until that is known; the pod itself may be tried again."""
    asked = await fractions.add_pod("a", hami(gpus=1, mem=15000))
    fractions.cluster.refusals["bind Pod a"] = ClusterUnavailable("away")
    assert "not answered" in await replica.bind(asked, "n1")
    assert sorted(free_on(replica)) == [360, 15360]
    assert (await replica.filter(asked, "n1"))[0] == ["n1"]

    binder = replica.scheduler._binder
    doubtful = await binder.check_reservations(frozenset())
    assert sorted(free_on(replica)) == [360, 15360]
    await binder.check_reservations(doubtful)
    assert free_on(replica) == [15360, 15360]


async def test_an_answer_that_was_lost(fractions: Fractions, replica: Replica) -> None:
    """R8: a pod that is bound already, as decided, is bound; on another node, it is not."""
    asked = await fractions.add_pod("a", SMALL)

    assert await asyncio.gather(replica.bind(asked, "n1"), replica.bind(asked, "n1")) == ["", ""]
    assert await replica.bind(asked, "n1") == ""
    assert await replica.bind(asked, "n2") == "the pod is on n1 already"
    assert [write for write in fractions.cluster.writes if write.startswith("bind")] == ["bind Pod a n1"]


async def test_two_nodes_at_once(fractions: Fractions, replica: Replica) -> None:
    """While one attempt is under way, a pod is not given to another node."""
    await fractions.add_node("n2")
    await replica.until(lambda: "n2" in replica.books.nodes)
    assert await replica.bind(await fractions.add_pod("first", SMALL), "n1") == ""
    asked = await fractions.add_pod("a", hami(gpus=1, mem=2000))
    waiting = asyncio.create_task(replica.bind(asked, "n1"))
    await until_waiting(replica)

    assert await replica.bind(asked, "n2") == "the pod is just being bound to n1"
    await fractions.start("first")
    assert await waiting == ""


# What is decided, and what comes of it.


async def test_the_kubelet_chose_another_gpu(fractions: Fractions, replica: Replica) -> None:
    """The books follow what the agent says, and people are told."""
    asked = await fractions.add_pod("a", hami(gpus=1, mem=9000))
    assert await replica.bind(asked, "n1") == ""
    [(grant,)] = fractions.decision("a").containers.values()
    chosen = 1 - int(grant.uuid[-1])

    await fractions.confirm("a", on={"main": [chosen]})
    uid = asked["metadata"]["uid"]
    await replica.until(lambda: replica.books.pods[uid].stage is Stage.CONFIRMED)

    assert free_on(replica)[chosen] == 6360
    assert free_on(replica)[1 - chosen] == 15360
    await fractions.cluster.until(lambda: bool(fractions.cluster.all(manifests.EVENT)))
    [event] = fractions.cluster.all(manifests.EVENT)
    assert event["reason"] == "GPUCorrected"
    assert event["message"] == (
        f"the kubelet chose other GPUs than planned: container main has GPU-n1-{chosen} instead of {grant.uuid}"
    )


async def test_what_was_free_may_have_gone(fractions: Fractions, replica: Replica) -> None:
    """Two pods that were filtered at once: the second is refused in words, and goes back to the queue."""
    first = await fractions.add_pod("first", hami(gpus=2, mem=9000))
    second = await fractions.add_pod("second", hami(gpus=2, mem=9000))
    assert (await replica.filter(first, "n1"))[0] == (await replica.filter(second, "n1"))[0] == ["n1"]

    assert await replica.bind(first, "n1") == ""
    assert await replica.bind(second, "n1") == "n1: 2/2 CardInsufficientMemory"
    await fractions.cluster.until(lambda: bool(fractions.cluster.all(manifests.EVENT)))
    assert [event["reason"] for event in fractions.cluster.all(manifests.EVENT)] == ["GPUNotGranted"]


async def test_only_init_containers(fractions: Fractions, replica: Replica) -> None:
    """R13: a pod whose init containers alone use a GPU is bound, holds it, and is confirmed by its kubelet."""
    await fractions.add_node("ack", mode=ALIYUN)
    await replica.until(lambda: "ack" in replica.books.nodes)
    asked = await fractions.add_pod("a", {"name": "main"}, initContainers=[aliyun("prepare", 5), aliyun("warm", 3)])

    assert await replica.bind(asked, "ack") == ""
    assert sorted(free_on(replica, "ack")) == [15 * 1024 - 5 * 1024, 15 * 1024]
    await fractions.start("a")
    uid = asked["metadata"]["uid"]
    await replica.until(lambda: replica.books.pods[uid].stage is Stage.CONFIRMED)


async def test_nobody_is_held_up_by_a_bind_that_waits(fractions: Fractions, replica: Replica) -> None:
    """R14: there is no lock on a node; filter answers while others wait for it."""
    assert await replica.bind(await fractions.add_pod("first", SMALL), "n1") == ""
    waiting = asyncio.create_task(replica.bind(await fractions.add_pod("a", hami(gpus=1, mem=2000)), "n1"))
    await until_waiting(replica)

    asked = await fractions.add_pod("b", hami(gpus=2, mem=14000))
    assert (await replica.filter(asked, "n1"))[1] == {
        "n1": "1/2 CardInsufficientMemory, 1/2 AllocatedCardsInsufficientRequest"
    }
    waiting.cancel()
    await asyncio.wait({waiting})


async def test_a_pod_that_is_deleted_while_it_waits(fractions: Fractions, replica: Replica) -> None:
    """It is not bound, holds nothing, keeps nobody else waiting, and no Event tells of it."""
    assert await replica.bind(await fractions.add_pod("first", SMALL), "n1") == ""
    asked = await fractions.add_pod("a", hami(gpus=1, mem=2000))
    waiting = asyncio.create_task(replica.bind(asked, "n1"))
    await until_waiting(replica)
    fractions.cluster.refusals["bind Pod a"] = ClusterRefused("pods a not found", code=404)
    await fractions.start("first")

    assert await waiting == "the pod is gone"
    assert sorted(free_on(replica)) == [14360, 15360]
    assert "CardInsufficientMemory" in await replica.bind(await fractions.add_pod("b", hami(gpus=1, mem=20000)), "n1")
    await fractions.cluster.until(lambda: bool(fractions.cluster.all(manifests.EVENT)))
    assert [event["involvedObject"]["name"] for event in fractions.cluster.all(manifests.EVENT)] == ["b"]


async def test_an_earlier_attempt_comes_through_while_a_later_one_waits(fractions: Fractions, replica: Replica) -> None:
    """R8: a Binding that was given up may be made all the same: the pod is where it is, once, and keeps nobody waiting."""
    await fractions.add_node("n2")
    await replica.until(lambda: "n2" in replica.books.nodes)
    other = await fractions.add_pod("other", hami(gpus=1, mem=2000))
    assert await replica.bind(other, "n2") == ""
    asked = await fractions.add_pod("a", SMALL)
    waiting = asyncio.create_task(replica.bind(asked, "n2"))
    await until_waiting(replica)
    uid = asked["metadata"]["uid"]
    late = Decision(pod_uid=uid, dialect=Dialect.HAMI, shape="s", containers={"main": (Grant("GPU-n1-0", 1000, 0),)})
    annotations = {names.ANNOTATION_DECISION: late.to_annotation()}
    metadata = {"name": "a", "namespace": "default", "uid": uid, "annotations": annotations}
    target = {"apiVersion": "v1", "kind": "Node", "name": "n1"}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
    await fractions.cluster.create(binding, subresource="binding", name="a")
    await replica.until(lambda: replica.books.pods[uid].node == "n1")
    await fractions.start("other")

    assert await waiting == "the pod is on n1 already"
    assert sorted(free_on(replica)) == [14360, 15360]
    assert sorted(free_on(replica, "n2")) == [13360, 15360]
    assert replica.books.flights.aboard("n2") == frozenset()
    assert replica.books.charges["default"].memory_mib == 3000


async def test_whole_gpus_from_before_the_node_gave_out_parts(fractions: Fractions, replica: Replica) -> None:
    """R16: a pod that has a whole GPU keeps it for itself, until it is gone; no quota is charged with it."""
    await fractions.add_pod("old", hami(gpus=1), nodeName="n1")
    await fractions.start("old")
    held = {"namespace": "default", "pod": "old", "container": "main", "resource": "nvidia.com/gpu"}
    await fractions.tell("n1", {0: [held]})
    await replica.until(lambda: replica.books.nodes["n1"].uses[0].alone == 1)
    both = await fractions.add_pod("both", hami(gpus=2, mem=1000))

    reason = "1/2 CardComputeUnitsExhausted, 1/2 AllocatedCardsInsufficientRequest"
    assert (await replica.filter(both, "n1"))[1] == {"n1": reason}
    assert "default" not in replica.books.charges
    await fractions.cluster.delete(manifests.POD, "old", "default", grace_seconds=0)
    await replica.until(lambda: replica.books.nodes["n1"].uses[0].alone == 0)
    assert (await replica.filter(both, "n1"))[0] == ["n1"]


async def test_renamed_shares_from_before_the_node_gave_out_parts(fractions: Fractions, replica: Replica) -> None:
    """R16: whoever holds a GPU by another name is known from the agent alone, and keeps it until the agent names nobody."""
    held = {"namespace": "default", "pod": "old", "container": "main", "resource": "nvidia.com/gpu.shared"}
    await fractions.tell("n1", {0: [held]})
    await replica.until(lambda: replica.books.nodes["n1"].uses[0].alone == 1)
    small = await fractions.add_pod("small", SMALL)

    assert await replica.bind(small, "n1") == ""
    assert [grant.uuid for grant in fractions.decision("small").containers["main"]] == ["GPU-n1-1"]
    await fractions.tell("n1", {})
    await replica.until(lambda: replica.books.nodes["n1"].uses[0].alone == 0)
    assert free_on(replica) == [15360, 14360]
