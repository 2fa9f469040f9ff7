"""Pods that extenders have a say in, over HTTPS, as a real scheduler would ask them."""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gpushare.domain import manifests
from gpushare.sandbox import scheduling
from gpushare.sandbox.scheduling import resting
from gpushare.sandbox.scheduling.configuration import Profile, read_profiles
from gpushare.serving.certificates import Authority
from gpushare.serving.http import HttpServer, Request, Response
from support import workload_objects as objects
from support.memory_cluster import MemoryCluster

LOG = logging.getLogger(__name__)
NAME = "gpushare-scheduler"
MEMORY = "example.com/memory"


class Standin:
    """An extender that says what a test wants, and remembers what it was asked."""

    def __init__(self) -> None:
        self.authority = Authority.create("authority")
        self.server = HttpServer(self._answer, LOG)
        self.port = 0
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.answers: dict[str, Callable[[dict[str, Any]], Any] | int] = {
            "filter": lambda asked: {"NodeNames": asked["NodeNames"]},
            "prioritize": lambda asked: [{"Host": name, "Score": 0} for name in asked["NodeNames"]],
            "bind": lambda _: {"Error": ""},
        }
        """By verb: the answer, or a code."""

    async def start(self) -> None:
        tls = self.authority.server_context("extender", ["extender.test"])
        self.port = await self.server.start("127.0.0.1", self.port, tls=tls)

    async def _answer(self, request: Request) -> Response:
        verb, asked = request.path.rpartition("/")[2], json.loads(request.body)
        self.calls.append((verb, asked))
        answer = self.answers[verb]
        if isinstance(answer, int):
            return Response(status=answer)
        said = answer(asked)
        return Response(body=json.dumps(await said if inspect.isawaitable(said) else said).encode())

    def profile(self, **changes: Any) -> Profile:
        extender = {
            "urlPrefix": f"https://127.0.0.1:{self.port}/scheduler/", "filterVerb": "filter", "bindVerb": "bind",
            "prioritizeVerb": "prioritize", "weight": 5, "nodeCacheCapable": True, "httpTimeout": "30s",
            "tlsConfig": {"caData": base64.b64encode(self.authority.pem.encode()).decode(), "serverName": "extender.test"},
            "managedResources": [{"name": MEMORY, "ignoredByScheduler": True}, {"name": "nvidia.com/gpu"}], **changes,
        }  # fmt: skip
        (profile,) = read_profiles({"profiles": [{"schedulerName": NAME}], "extenders": [extender]})
        return profile


@pytest.fixture
async def extender() -> AsyncIterator[Standin]:
    extender = Standin()
    await extender.start()
    yield extender
    await extender.server.stop()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds become hundredths."""
    monkeypatch.setattr(resting, "_FIRST_SECONDS", 0.01)
    monkeypatch.setattr(resting, "_LAST_SECONDS", 0.05)


@asynccontextmanager
async def running(cluster: MemoryCluster, profile: Profile) -> AsyncIterator[None]:
    stop = asyncio.Event()
    task = asyncio.create_task(scheduling.run(cluster, LOG, stop, (Profile(), profile)))
    try:
        yield
    finally:
        stop.set()
        await task


@pytest.fixture
async def cluster() -> MemoryCluster:
    cluster = MemoryCluster()
    for name in ("a", "b", "c"):
        await cluster.create(objects.node(name, gpu="4"))
    return cluster


def fraction(name: str, *, scheduler: str = NAME, resource: str = MEMORY) -> dict[str, Any]:
    pod = objects.pod(name)
    pod["spec"]["schedulerName"] = scheduler
    pod["spec"]["containers"][0]["resources"] = {"limits": {resource: "1"}, "requests": {resource: "1"}}
    return pod


def node_of(cluster: MemoryCluster, name: str) -> str:
    return cluster.now(manifests.POD, name, "default")["spec"].get("nodeName", "")


def message_of(cluster: MemoryCluster, name: str, reason: str) -> str:
    conditions = cluster.now(manifests.POD, name, "default")["status"].get("conditions", [])
    return next((each["message"] for each in conditions if each.get("reason") == reason), "")


async def bound(cluster: MemoryCluster, asked: dict[str, Any]) -> Any:
    """What an extender does when it binds."""
    about = {"name": asked["PodName"], "namespace": asked["PodNamespace"]}
    await cluster.create(
        {"kind": "Binding", "metadata": about, "target": {"name": asked["Node"]}}, subresource="binding"
    )


def scheduled(cluster: MemoryCluster) -> list[str]:
    return [each["message"] for each in cluster.all(manifests.EVENT) if each["reason"] == "Scheduled"]


async def test_placed(cluster: MemoryCluster, extender: Standin) -> None:
    """Filter narrows, prioritize decides, bind is left to the extender; a resource that it counts need not be on nodes."""
    extender.answers["filter"] = lambda _: {"nodenames": ["a", "b"], "failednodes": {"c": "no"}}
    extender.answers["prioritize"] = lambda _: [{"Host": "a", "Score": 10}, {"Host": "b", "Score": 0}]
    async with running(cluster, extender.profile()):
        await cluster.create(fraction("one"))
        await cluster.until(lambda: len(scheduled(cluster)) == 1)

    assert [verb for verb, _ in extender.calls] == ["filter", "prioritize", "bind"]
    assert (extender.calls[0][1]["NodeNames"], extender.calls[0][1]["Nodes"]) == (["a", "b", "c"], None)
    pod = cluster.now(manifests.POD, "one", "default")["metadata"]
    assert extender.calls[2][1] == {"PodName": "one", "PodNamespace": "default", "PodUID": pod["uid"], "Node": "a"}
    [event] = cluster.all(manifests.EVENT)
    assert event["reportingComponent"] == NAME


async def test_whole_nodes(cluster: MemoryCluster, extender: Standin) -> None:
    """An extender without a cache of nodes gets them whole, and answers with nodes."""
    extender.answers["filter"] = lambda asked: {"Nodes": {"items": asked["Nodes"]["items"][2:]}}
    async with running(cluster, extender.profile(nodeCacheCapable=False, bindVerb="")):
        await cluster.create(fraction("one"))
        await cluster.until(lambda: len(scheduled(cluster)) == 1)

    assert node_of(cluster, "one") == "c"


async def test_not_concerned(cluster: MemoryCluster, extender: Standin) -> None:
    """Pods that ask for none of its resources, and those of another scheduler, never come to it."""
    async with running(cluster, extender.profile()):
        await cluster.create(fraction("one", resource="cpu"))
        await cluster.create(fraction("two", scheduler="default-scheduler", resource="nvidia.com/gpu"))
        await cluster.until(lambda: len(scheduled(cluster)) == 2)

    assert extender.calls == []


async def test_refused(cluster: MemoryCluster, extender: Standin) -> None:
    """Reasons of the extender stand beside the scheduler's own, counted, in one message."""
    await cluster.patch(manifests.NODE, "c", {"spec": {"unschedulable": True}})
    extender.answers["filter"] = lambda _: {
        "NodeNames": [], "FailedNodes": {"a": "1/4 CardInsufficientMemory"}, "FailedAndUnresolvableNodes": {"b": "no GPUs"},
    }  # fmt: skip
    async with running(cluster, extender.profile()):
        await cluster.create(fraction("one"))
        await cluster.until(lambda: message_of(cluster, "one", "Unschedulable") != "")

    assert message_of(cluster, "one", "Unschedulable") == (
        "0/3 nodes are available: 1 1/4 CardInsufficientMemory, 1 no GPUs, 1 node(s) were unschedulable. no new claims to "
        "deallocate, preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, 2 Preemption is not "
        "helpful for scheduling."
    )


async def test_fits_later(cluster: MemoryCluster, extender: Standin) -> None:
    """A pod that fits nowhere is asked about again once something has changed."""
    extender.answers["filter"] = lambda _: {"NodeNames": [], "FailedNodes": dict.fromkeys("abc", "full")}
    async with running(cluster, extender.profile(bindVerb="")):
        await cluster.create(fraction("one"))
        await cluster.until(lambda: message_of(cluster, "one", "Unschedulable") != "")
        extender.answers["filter"] = lambda asked: {"NodeNames": asked["NodeNames"]}
        await cluster.patch(manifests.NODE, "a", {"metadata": {"labels": {"x": "y"}}})
        await cluster.until(lambda: node_of(cluster, "one") != "")


async def test_changed_meanwhile(cluster: MemoryCluster, extender: Standin) -> None:
    """What changes while the extender thinks is reason enough to ask again."""

    async def refuse_once(_: dict[str, Any]) -> dict[str, Any]:
        extender.answers["filter"] = lambda asked: {"NodeNames": asked["NodeNames"]}
        await cluster.patch(manifests.NODE, "a", {"metadata": {"labels": {"x": "y"}}})
        for _ in range(20):  # turns of the loop, in which the scheduler sees it
            await asyncio.sleep(0)
        return {"NodeNames": [], "FailedNodes": dict.fromkeys("abc", "full")}

    extender.answers["filter"] = refuse_once
    async with running(cluster, extender.profile(bindVerb="")):
        await cluster.create(fraction("one"))
        await cluster.until(lambda: node_of(cluster, "one") != "")


async def test_fits_without_a_change(
    cluster: MemoryCluster, extender: Standin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an extender goes by may change where the scheduler does not see it: in the end it asks again."""
    monkeypatch.setattr(resting, "_LEFTOVER_SECONDS", 0.05)
    extender.answers["filter"] = lambda _: {"NodeNames": [], "FailedNodes": dict.fromkeys("abc", "full")}
    async with running(cluster, extender.profile(bindVerb="")):
        await cluster.create(fraction("one"))
        await cluster.until(lambda: message_of(cluster, "one", "Unschedulable") != "")
        extender.answers["filter"] = lambda asked: {"NodeNames": asked["NodeNames"]}
        await cluster.until(lambda: node_of(cluster, "one") != "")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param(503, "failed filter with extender at URL {url}, code 503", id="code"),
        pytest.param(lambda _: {"Error": "not the leader yet"}, "not the leader yet", id="error"),
        pytest.param(
            lambda _: {"NodeNames": ["x"]},
            'extender "{prefix}" claims a filtered node "x" which is not found in the input node list',
            id="a node that nobody asked about",
        ),
    ],
)
async def test_broken(cluster: MemoryCluster, extender: Standin, answer: Any, said: str) -> None:
    """What is wrong with the extender stands on the pod, which is tried again by itself."""
    prefix = f"https://127.0.0.1:{extender.port}/scheduler"
    extender.answers["filter"] = answer
    async with running(cluster, extender.profile(bindVerb="")):
        await cluster.create(fraction("one"))
        await cluster.until(lambda: message_of(cluster, "one", "SchedulerError") != "")
        extender.answers["filter"] = lambda asked: {"NodeNames": asked["NodeNames"]}
        await cluster.until(lambda: node_of(cluster, "one") != "")
        [failed] = [each for each in cluster.all(manifests.EVENT) if each["reason"] == "FailedScheduling"]

    assert failed["message"] == said.format(url=f"{prefix}/filter", prefix=prefix)


async def test_down(cluster: MemoryCluster, extender: Standin) -> None:
    """While the extender is down its pods wait, with an event that says so; all others are placed; then it goes on."""
    await extender.server.stop()
    async with running(cluster, extender.profile(bindVerb="")):
        await cluster.create(fraction("one"))
        await cluster.create(fraction("two", resource="cpu"))
        await cluster.create(fraction("three", scheduler="default-scheduler", resource="nvidia.com/gpu"))
        await cluster.until(lambda: len(scheduled(cluster)) == 2)
        await cluster.until(lambda: message_of(cluster, "one", "SchedulerError") != "")
        await extender.start()
        await cluster.until(lambda: node_of(cluster, "one") != "")

    url = f"https://127.0.0.1:{extender.port}/scheduler/filter"
    said = f'Post "{url}": dial tcp: connect: connection refused'
    assert said in [each["message"] for each in cluster.all(manifests.EVENT)]


async def test_ignorable(cluster: MemoryCluster, extender: Standin) -> None:
    """Without an extender that may be missing, pods are placed as if there were none."""
    await extender.server.stop()
    async with running(cluster, extender.profile(bindVerb="", ignorable=True)):
        await cluster.create(fraction("one"))
        await cluster.until(lambda: len(scheduled(cluster)) == 1)


async def test_slow(cluster: MemoryCluster, extender: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who does not answer in time has failed."""
    gate = asyncio.Event()

    async def hang(_: Request) -> Response:
        await gate.wait()
        return Response()

    monkeypatch.setattr(extender.server, "_handler", hang)
    async with running(cluster, extender.profile(httpTimeout="50ms")):
        await cluster.create(fraction("one"))
        await cluster.until(lambda: "context deadline exceeded" in message_of(cluster, "one", "SchedulerError"))


async def test_bind_fails(cluster: MemoryCluster, extender: Standin) -> None:
    """A bind that the extender refuses gives the room back, says why, and is tried again."""
    errors = ["another pod is in flight on the node", ""]
    extender.answers["bind"] = lambda _: {"Error": errors.pop(0)}
    async with running(cluster, extender.profile()):
        await cluster.create(fraction("one"))
        await cluster.until(lambda: len(scheduled(cluster)) == 1)

    assert [verb for verb, _ in extender.calls].count("bind") == 2
    notes = [each["message"] for each in cluster.all(manifests.EVENT) if each["reason"] == "FailedScheduling"]
    assert notes == ["another pod is in flight on the node"]


def important(name: str, gpu: str, priority: int) -> dict[str, Any]:
    pod = objects.pod(name, gpu=gpu)
    pod["spec"] |= {"schedulerName": NAME, "priority": priority}
    return pod


@pytest.mark.parametrize(
    ("verb", "goes"),
    [pytest.param("", "low-1", id="alone"), pytest.param("preempt", "low-2", id="as the extender says")],
)
async def test_preemption(extender: Standin, verb: str, goes: str) -> None:
    """Less important pods go, those that the extender names where it is asked; then the pod comes to their node."""
    cluster = MemoryCluster()
    await cluster.create(objects.node("a", gpu="4"))
    for number in (1, 2):
        await cluster.create({**important(f"low-{number}", "2", number), "status": {"phase": "Running"}})
        await cluster.patch(manifests.POD, f"low-{number}", {"spec": {"nodeName": "a"}}, "default")
    other = cluster.now(manifests.POD, "low-2", "default")["metadata"]["uid"]
    extender.answers["preempt"] = lambda _: {"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": other}]}}}
    async with running(cluster, extender.profile(bindVerb="", preemptVerb=verb)):
        await cluster.create(important("urgent", "2", 5))
        await cluster.until(lambda: f"delete Pod {goes}" in cluster.writes)
        await cluster.until(
            lambda: cluster.now(manifests.POD, "urgent", "default")["status"].get("nominatedNodeName") == "a"
        )
        await cluster.delete(manifests.POD, goes, "default", grace_seconds=0)
        await cluster.until(lambda: node_of(cluster, "urgent") == "a")

    assert [write for write in cluster.writes if write.startswith("delete")] == [f"delete Pod {goes}"] * 2
    if verb:
        (asked,) = [asked for called, asked in extender.calls if called == "preempt"]
        low = cluster.now(manifests.POD, "low-1", "default")["metadata"]["uid"]
        assert asked["NodeNameToMetaVictims"] == {"a": {"Pods": [{"UID": low}]}}
    [event] = [each for each in cluster.all(manifests.EVENT) if each["reason"] == "Preempted"]
    assert event["involvedObject"]["name"] == goes


def test_defaults() -> None:
    """Without profiles there is the default one, and an extender that says little is asked little."""
    (profile,) = read_profiles({"extenders": [{"urlPrefix": "http://x/y/"}]})

    [extender] = profile.extenders
    assert (profile.name, extender.url, extender.seconds, extender.weight) == (
        "default-scheduler",
        "http://x/y",
        5.0,
        1,
    )
    assert extender.is_interested(objects.pod("any"))
