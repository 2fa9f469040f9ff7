"""The scheduler as kube-scheduler asks it: filter, prioritize, bind, inspect, over HTTPS."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from gpushare.domain import manifests
from gpushare.scheduler.books import Stage
from support.placements import aliyun, hami
from support.schedulers import ALIYUN, Fractions, Replica


@pytest.fixture
async def fractions() -> Fractions:
    found = Fractions()
    await found.add_node("n1")
    await found.add_node("n2")
    return found


@pytest.fixture
async def replica(fractions: Fractions) -> AsyncIterator[Replica]:
    async with fractions.replica() as running:
        yield running


async def bind_one(
    fractions: Fractions, replica: Replica, name: str, node: str, *containers: Mapping[str, Any], **more: Any
) -> None:
    """A pod that is bound and confirmed."""
    asked = await fractions.add_pod(name, *containers, **more)
    assert await replica.bind(asked, node) == ""
    await fractions.confirm(name)
    uid = asked["metadata"]["uid"]
    await replica.until(lambda: replica.books.pods[uid].stage == Stage.CONFIRMED)


async def test_a_pod_is_bound_with_its_decision(fractions: Fractions, replica: Replica) -> None:
    """All nodes that fit are offered; the Binding says which GPU, to us and to others' tools."""
    pod = await fractions.add_pod("a", hami(gpus=1, mem=3000, cores=30))

    assert await replica.filter(pod, "n1", "n2", "n3") == (["n1", "n2"], {"n3": "NodeUnknown"})
    assert await replica.bind(pod, "n1") == ""

    annotations = fractions.pod("a")["metadata"]["annotations"]
    [(grant,)] = fractions.decision("a").containers.values()
    assert (grant.memory_mib, grant.cores) == (3000, 30)
    assert annotations["hami.io/vgpu-node"] == "n1"
    assert annotations["hami.io/vgpu-devices-allocated"] == f"{grant.uuid},NVIDIA,3000,30:;"


async def test_what_does_not_fit_says_why(fractions: Fractions, replica: Replica) -> None:
    """Codes with numbers; nodes that no eviction would help are told apart, so that nobody is evicted for nothing."""
    await fractions.add_node("full", gpus=1)
    await fractions.add_node("other", mode=ALIYUN)
    await fractions.add_node("whole", mode=None)
    await fractions.add_node("starting", ready="False")
    await replica.until(lambda: len(replica.books.nodes) == 6)
    await bind_one(fractions, replica, "first", "full", hami(gpus=1, mem=15000))
    asked = await fractions.add_pod("a", hami(gpus=1, mem=9000))

    body = {"Pod": asked, "NodeNames": ["full", "other", "whole", "starting", "none"]}
    _, answer = await replica.ask("POST", "/gpushare-scheduler/filter", body)

    assert answer["NodeNames"] == []
    assert answer["FailedNodes"] == {"full": "1/1 CardInsufficientMemory"}
    assert answer["FailedAndUnresolvableNodes"] == {
        "other": "DialectMismatch",
        "whole": "NodeServesNoFractions",
        "starting": "AgentNotReady",
        "none": "NodeUnknown",
    }


async def test_keys_in_any_case(fractions: Fractions, replica: Replica) -> None:
    """Go reads its own types in any case, and so do we."""
    asked = await fractions.add_pod("a", hami(gpus=1, mem=1000))
    metadata = asked["metadata"]

    assert (await replica.ask("POST", "/filter", {"pod": asked, "nodenames": ["n1"]}))[1]["NodeNames"] == ["n1"]
    call = {"podName": "a", "podNamespace": "default", "podUID": metadata["uid"], "node": "n1"}
    assert (await replica.ask("POST", "/bind", call))[1] == {"Error": ""}


@pytest.mark.parametrize(
    ("verb", "body", "says"),
    [
        pytest.param("filter", b"{", "no JSON", id="no JSON"),
        pytest.param("filter", [], "no JSON object", id="no object"),
        pytest.param("filter", {"NodeNames": []}, "Pod is not given", id="no pod"),
        pytest.param("filter", {"Pod": {"metadata": {}}}, "neither NodeNames nor Nodes", id="no nodes"),
        pytest.param("bind", {"PodName": "a"}, "PodNamespace, PodUID, Node not given", id="half a bind"),
        pytest.param(
            "bind", {"PodName": "a", "PodNamespace": "b", "PodUID": "c", "Node": "n1"}, "gone", id="no such pod"
        ),
    ],
)
async def test_nonsense_is_answered(replica: Replica, verb: str, body: object, says: str) -> None:
    """200 with Error, never a bare 500: kube-scheduler reads a reason from nothing else."""
    status, answer = await replica.ask("POST", f"/{verb}", body)

    assert status == 200
    assert says in answer["Error"]


async def test_whole_nodes(fractions: Fractions, replica: Replica) -> None:
    """Nodes that only a cluster autoscaler has thought of are judged by their labels, and nothing is remembered of them."""
    asked = await fractions.add_pod("a", hami(gpus=1, mem=20000))
    labels = {"nvidia.com/gpu.count": "2", "nvidia.com/gpu.memory": "40960"}
    template = {
        "metadata": {"name": "template", "labels": labels},
        "status": {"allocatable": {"nvidia.com/gpu": "20"}},
    }
    large = {
        "metadata": {"name": "large", "labels": labels},
        "status": {"allocatable": {"nvidia.com/gpu": "1k"}},
    }
    units = {"aliyun.com/gpu-mem": "30", "aliyun.com/gpu-count": "2"}
    ack = {"metadata": {"name": "ack"}, "status": {"allocatable": units}}
    plain = {"metadata": {"name": "plain"}, "status": {"allocatable": {"nvidia.com/gpu": "2"}}}
    known = {"metadata": {"name": "n1"}}

    body = {"Pod": asked, "Nodes": {"items": [template, large, ack, plain, known]}}
    _, answer = await replica.ask("POST", "/filter", body)

    assert answer["Nodes"]["items"] == [template, large]
    assert answer["FailedNodes"] == {"n1": "2/2 CardInsufficientMemory"}
    assert answer["FailedAndUnresolvableNodes"] == {"ack": "DialectMismatch", "plain": "NodeUnknown"}
    assert sorted(replica.books.nodes) == ["n1", "n2"]
    assert replica.books.pods == {}


async def test_a_pod_without_fractions(fractions: Fractions, replica: Replica) -> None:
    """It fits everywhere, and is bound without a decision."""
    asked = await fractions.add_pod("a", {"name": "main"})

    assert await replica.filter(asked, "n1", "x") == (["n1", "x"], {})
    assert await replica.bind(asked, "x") == ""
    assert fractions.pod("a")["spec"]["nodeName"] == "x"
    assert fractions.pod("a")["metadata"]["annotations"] == {}


@pytest.mark.parametrize(
    ("policy", "best"),
    [
        pytest.param("binpack", "n1", id="binpack: the fuller node"),
        pytest.param("spread", "n2", id="spread: the emptier"),
    ],
)
async def test_priorities(fractions: Fractions, replica: Replica, policy: str, best: str) -> None:
    """0 to 10, by what the pod says about nodes."""
    await bind_one(fractions, replica, "first", "n1", hami(gpus=1, mem=4000))
    annotations = {"hami.io/node-scheduler-policy": policy}
    asked = await fractions.add_pod("a", hami(gpus=1, mem=4000), annotations=annotations)

    _, scores = await replica.ask("POST", "/prioritize", {"Pod": asked, "NodeNames": ["n1", "n2"]})

    assert max(scores, key=lambda each: each["Score"]) == {"Host": best, "Score": 10}
    assert min(each["Score"] for each in scores) == 0


async def test_preemption_names_pods_that_hold_gpus(fractions: Fractions, replica: Replica) -> None:
    """What kube-scheduler would evict is kept; where it frees no GPU memory, the least important pods that do are added."""
    await fractions.add_node("one", gpus=1)
    await replica.until(lambda: "one" in replica.books.nodes)
    await bind_one(fractions, replica, "low", "one", hami(gpus=1, mem=8000), priority=1)
    await bind_one(fractions, replica, "mid", "one", hami(gpus=1, mem=7000), priority=5)
    asked = await fractions.add_pod("a", hami(gpus=1, mem=8000), priority=10)
    uid = {name: fractions.pod(name)["metadata"]["uid"] for name in ("low", "mid")}

    meta = {"one": {"Pods": [{"UID": "somebody"}], "NumPDBViolations": 1}, "none": {"Pods": []}}
    _, answer = await replica.ask("POST", "/preempt", {"Pod": asked, "NodeNameToMetaVictims": meta})
    assert answer["NodeNameToMetaVictims"] == {
        "one": {"Pods": [{"UID": "somebody"}, {"UID": uid["low"]}], "NumPDBViolations": 1}
    }

    whole = {"one": {"Pods": [fractions.pod("mid"), fractions.pod("low")]}}
    _, answer = await replica.ask("POST", "/preempt", {"Pod": asked, "NodeNameToVictims": whole})
    assert answer["NodeNameToMetaVictims"]["one"]["Pods"] == [{"UID": uid["mid"]}, {"UID": uid["low"]}]

    asked["spec"]["priority"] = 1
    _, answer = await replica.ask("POST", "/preempt", {"Pod": asked, "NodeNameToMetaVictims": meta})
    assert answer["NodeNameToMetaVictims"] == {}


async def test_quota(fractions: Fractions, replica: Replica) -> None:
    """Counted for all GPUs of a pod, which Kubernetes itself does not; lowered, raised and gone as the object is."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "gpus", "namespace": "default"},
        "spec": {"hard": {"limits.nvidia.com/gpumem": "10k"}},
    }
    await fractions.cluster.create(quota)
    await replica.until(lambda: bool(replica.scheduler._limits.all()))
    await bind_one(fractions, replica, "first", "n1", hami(gpus=2, mem=3000))
    asked = await fractions.add_pod("a", hami(gpus=1, mem=5000))

    assert await replica.filter(asked, "n1", "n2") == (
        [],
        {"n1": "2/2 ResourceQuotaNotFit", "n2": "2/2 ResourceQuotaNotFit"},
    )
    assert "ResourceQuotaNotFit" in await replica.bind(asked, "n2")
    response = await replica.review(asked)
    assert response["status"]["code"] == 403
    assert "exceeds the quota of namespace default: asks for 5000 MiB" in response["status"]["message"]
    assert "4000 MiB are left" in response["status"]["message"]

    await fractions.cluster.delete(manifests.RESOURCE_QUOTA, "gpus", "default")
    await replica.until(lambda: not replica.scheduler._limits.all())
    assert await replica.bind(asked, "n2") == ""


async def test_a_cordoned_gpu(fractions: Fractions, replica: Replica) -> None:
    """An annotation of the Node takes a GPU out, and back in."""
    asked = await fractions.add_pod("a", hami(gpus=2, mem=1000))

    async def annotate(value: str | None) -> None:
        body = {"metadata": {"annotations": {"hami.io/device-cordon": value}}}
        await fractions.cluster.patch(manifests.NODE, "n1", body)

    await annotate("GPU-n1-0, ")
    await replica.until(lambda: any(gpu.traits.is_cordoned for gpu in replica.books.nodes["n1"].gpus))
    assert (await replica.filter(asked, "n1"))[1] == {"n1": "1/2 CardCordoned, 1/2 AllocatedCardsInsufficientRequest"}
    await annotate(None)
    await replica.until(lambda: not any(gpu.traits.is_cordoned for gpu in replica.books.nodes["n1"].gpus))
    assert (await replica.filter(asked, "n1"))[0] == ["n1"]


async def test_a_configuration_that_is_not_applied_yet(fractions: Fractions, replica: Replica) -> None:
    """Between two configurations a node is not offered: what its status shows may be over before a pod has come."""
    asked = await fractions.add_pod("a", hami(gpus=1, mem=1000))
    config = {"reason": "label", "revision": "x", "content": "version: v1\nother: {}\n"}
    await fractions.cluster.patch(manifests.GPU_NODE, "n1", {"spec": {"config": config}})
    await replica.until(lambda: not replica.books.nodes["n1"].is_settled)

    assert (await replica.filter(asked, "n1", "n2")) == (["n2"], {"n1": "ConfigNotApplied"})
    assert await replica.bind(asked, "n1") == "n1: ConfigNotApplied"


async def test_inspect(fractions: Fractions, replica: Replica) -> None:
    """The JSON of Alibaba's extender, in units of the node; a node that there is not is an error in words."""
    await fractions.add_node("ack", mode=ALIYUN)
    await replica.until(lambda: "ack" in replica.books.nodes)
    await bind_one(fractions, replica, "a", "ack", aliyun(units=4))

    _, answer = await replica.ask("GET", "/gpushare-scheduler/inspect/ack")
    assert answer["error"] == ""
    [node] = answer["nodes"]
    assert (node["name"], node["totalGPU"], node["usedGPU"], node["unitMiB"]) == ("ack", 30, 4, 1024)
    used = {each["id"]: each["usedGPU"] for each in node["devs"]}
    [(grant,)] = fractions.decision("a").containers.values()
    index = int(grant.uuid[-1])
    assert used == {index: 4, 1 - index: 0}
    assert node["devs"][index]["pods"] == [{"name": "a", "namespace": "default", "usedGPU": 4}]
    annotations = fractions.pod("a")["metadata"]["annotations"]
    assert {name: annotations[f"ALIYUN_COM_GPU_MEM_{name}"] for name in ("IDX", "POD", "DEV", "ASSIGNED")} == {
        "IDX": str(index),
        "POD": "4",
        "DEV": "15",
        "ASSIGNED": "true",
    }

    _, everything = await replica.ask("GET", "/inspect")
    assert [each["name"] for each in everything["nodes"]] == ["ack", "n1", "n2"]
    assert (await replica.ask("GET", "/inspect/n9"))[1] == {
        "nodes": [],
        "error": "no node n9 that serves fractions of GPUs",
    }


async def test_memory_over_several_gpus(fractions: Fractions, replica: Replica) -> None:
    """Alibaba's label spreads units; their tools read who has what from JSON."""
    await fractions.add_node("ack", mode=ALIYUN)
    await replica.until(lambda: "ack" in replica.books.nodes)
    await bind_one(fractions, replica, "a", "ack", aliyun(units=6), labels={"aliyun.com/gpu-count": "2"})

    annotations = fractions.pod("a")["metadata"]["annotations"]
    assert json.loads(annotations["scheduler.framework.gpushare.allocation"]) == {"0": {"0": 3, "1": 3}}
    assert "ALIYUN_COM_GPU_MEM_IDX" not in annotations


async def test_other_paths(replica: Replica) -> None:
    """Version, health, figures; anything else says what there is."""
    assert (await replica.ask("GET", "/version"))[1]["version"]
    assert await replica.ask("GET", "/healthz") == (200, "ok\n")
    assert "gpushare_scheduler_leading 1.0" in (await replica.ask("GET", "/metrics"))[1]
    assert (await replica.ask("POST", "/nothing"))[0] == 404
    assert (await replica.ask("POST", "/webhook", b"nothing"))[0] == 400


async def test_a_defect_of_ours_is_said(fractions: Fractions, replica: Replica) -> None:
    """Whatever happens, kube-scheduler gets a reason."""
    asked = await fractions.add_pod("a", hami(gpus=1, mem=1))
    replica.scheduler._extender._decider = None  # type: ignore[assignment]

    status, answer = await replica.ask("POST", "/filter", {"Pod": asked, "NodeNames": ["n1"]})

    assert status == 200
    assert answer["Error"] == "gpushare scheduler has failed, see its log: AttributeError"


async def test_a_node_that_cannot_be_read(
    fractions: Fractions, replica: Replica, caplog: pytest.LogCaptureFixture
) -> None:
    """Written by another version, or by hand: it is not offered, said in the log, and all others are served."""
    await fractions.cluster.patch(
        manifests.GPU_NODE, "n1", {"status": {"fractions": {"dialect": "klingon"}}}, subresource="status"
    )
    await replica.until(lambda: "n1" not in replica.books.nodes)
    asked = await fractions.add_pod("a", hami(gpus=1, mem=1))

    assert await replica.filter(asked, "n1", "n2") == (["n2"], {"n1": "NodeUnknown"})
    assert "object cannot be read" in caplog.text
