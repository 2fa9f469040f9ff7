"""Controller and agent without one of their rights: they say which one, and go on with everything else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from gpushare import names
from gpushare.agent import devices, publishing
from gpushare.domain import manifests
from gpushare.domain.fractions import Grant
from gpushare.domain.manifests import Manifest
from gpushare.plan import permissions
from gpushare.plan.permissions import Right
from gpushare.render.templates import render
from support import agents
from support.agent_clusters import HAMI, ROLES, WAIT_SECONDS, AgentCluster, held_by
from support.agents import GPU
from support.clusters import NAMESPACE, GpuCluster
from support.snapshots import time_slicing

CONTROLLER_ROLES = [item for item in render("controller", {"namespace": NAMESPACE, "image": "x"}) if "rules" in item]
RIGHTS = sorted({right for role in CONTROLLER_ROLES for right in permissions.rights_of(role)})
SILENT = {
    *(Right("nvidia.com", "clusterpolicies", verb) for verb in ("list", "watch")),
    Right("nvidia.com", "clusterpolicies/status", "patch"),
    *(Right("coordination.k8s.io", "leases", verb) for verb in ("get", "create", "update")),
}
"""Without these no policy can be found or written, so that the log has to do."""
_OF_AGENTS = sorted({right for role in ROLES for right in permissions.rights_of(role)})
AGENT_EVENTS = [right for right in _OF_AGENTS if right.resource == "events"]
AGENT_RIGHTS = [right for right in _OF_AGENTS if right not in AGENT_EVENTS]
FEWER = "gpushare: {fractions: hami, slots: 5}\n"


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[GpuCluster]:
    async with GpuCluster.running(tmp_path) as cluster:
        await cluster.add_node("gpu01")
        await cluster.apply_config("sharing", any=time_slicing(4))
        await cluster.apply_policy(devicePlugin={"config": {"name": "sharing", "default": "any"}})
        yield cluster


@pytest.mark.parametrize("right", RIGHTS, ids=lambda right: f"{right.verb}-{right.object}")
async def test_one_right_is_missing(cluster: GpuCluster, right: Right, caplog: pytest.LogCaptureFixture) -> None:
    """A controller without one right does not end, and names it: on the policy, or in its log."""
    caplog.set_level(logging.INFO)
    await without(cluster, right)

    async with cluster.controller("--metrics-port", "0"):
        if right not in SILENT:
            told = await cluster.until_condition("Permitted", "False", saying=right.object)
            assert f"may not {right.verb} {right.object}; " in told["message"]
        else:
            await cluster.until("the log tells", lambda: said(caplog, right))
            await cluster.until("readiness tells", lambda: is_not_ready(caplog, right))


async def said(caplog: pytest.LogCaptureFixture, right: Right) -> bool:
    return any(
        right.resource in text and right.verb in text
        for record in caplog.records
        for text in [str(getattr(record, "reason", "")) + str(getattr(record, "missing", ""))]
    )


async def is_not_ready(caplog: pytest.LogCaptureFixture, right: Right) -> bool:
    port = next(record.port for record in caplog.records if record.getMessage() == "listening")
    code, text = await fetch(port, "/readyz")
    _, figures = await fetch(port, "/metrics")
    return code == 503 and right.object in text and "gpushare_controller_rights_missing 1.0" in figures


async def fetch(port: int, path: str) -> tuple[int, str]:
    """An HTTP GET of this machine."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n".encode())
    answer = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    return int(answer.split()[1]), answer


async def test_right_is_given_back(cluster: GpuCluster) -> None:
    """What a missing right held up is done once it is there, and the policy no longer speaks of it."""
    patch_nodes = Right("", "nodes", "patch")
    await without(cluster, patch_nodes)
    async with cluster.controller():
        await cluster.until_condition("Permitted", "False", saying="may not patch nodes; ")
        await cluster.until_condition("Error", "True", saying="cannot patch resource")
        await cluster.until_config("gpu01", content=time_slicing(4))

        for role in CONTROLLER_ROLES:
            await cluster.admin.apply(role, manager="installer", force=True)

        await cluster.until_condition("Permitted", "True")
        await cluster.until_condition("Error", "True", saying="not ready")
        node = await cluster.get(manifests.NODE, "gpu01")
        assert node["metadata"]["labels"][names.LABEL_PRESENT] == "true"


async def without(cluster: GpuCluster, right: Right) -> None:
    """Takes one verb on one resource out of the roles of the controller."""
    for role in CONTROLLER_ROLES:
        await cluster.admin.apply(reduced(role, right), manager="installer", force=True)


def reduced(role: Manifest, right: Right) -> Manifest:
    """The role without one verb on one resource."""
    rules = [
        {**rule, "resources": [resource], "apiGroups": [group], "verbs": verbs}
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        if (verbs := [verb for verb in rule["verbs"] if Right(group, resource, verb) != right])
    ]
    return {**role, "rules": rules}


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[agents.Machine]:
    """One on which nobody waits for long."""
    monkeypatch.setattr(devices, "WAIT_SECONDS", 0.05)
    monkeypatch.setattr(publishing, "REFUSED_SECONDS", 0.2)
    with agents.machine() as made:
        made.kubelet.start()
        yield made


@pytest.fixture
async def node(machine: agents.Machine, tmp_path: Path) -> AsyncIterator[AgentCluster]:
    """A node that gives out fractions, for which its agent needs more rights than for anything else."""
    async with AgentCluster.running(machine, tmp_path) as cluster:
        await cluster.assign(HAMI)
        yield cluster


@pytest.mark.parametrize("right", AGENT_RIGHTS, ids=lambda right: f"{right.verb}-{right.object}")
async def test_agent_without_one_right(node: AgentCluster, right: Right, caplog: pytest.LogCaptureFixture) -> None:
    """An agent without one right names it in its log and does not end; once it has it, all that was held up is done."""
    await node.grant(tuple(reduced(role, right) for role in ROLES))
    async with node.agent():
        await until_refused(caplog, right)

        await node.grant(ROLES)
        await node.assign(FEWER)
        await node.is_serving(FEWER, gpu=20)
        uid = await bind(node)
        await let_in(node)
        await node.until(lambda status: held_by(status).get(uid))


@pytest.mark.parametrize("right", AGENT_EVENTS, ids=lambda right: f"{right.verb}-{right.object}")
async def test_agent_that_cannot_post(node: AgentCluster, right: Right, caplog: pytest.LogCaptureFixture) -> None:
    """The same of its Events, of which one is posted, and then found and counted up by the next agent; pods are let in."""
    uid = await bind(node)
    async with node.agent():
        await node.is_serving(HAMI, gpu=40)
        await let_in(node)
        await until_posted(node)
    node.machine.holders.clear()
    await node.grant(tuple(reduced(role, right) for role in ROLES))

    async with node.agent():
        await node.machine.kubelet.until(lambda: node.machine.kubelet.registered().count(GPU) == 2)
        await let_in(node)
        await until_refused(caplog, right)
        await node.until(lambda status: held_by(status).get(uid))


async def bind(node: AgentCluster) -> str:
    """Places a pod on the first GPU; gives its uid."""
    return await node.bind("a", {"main": (Grant(node.machine.uuids()[0], 3000),)})


async def let_in(node: AgentCluster) -> None:
    """What a kubelet does that chooses another GPU, of which an Event has to tell."""
    await node.let_in("a", "main", 1, choose=(f"{node.machine.uuids()[3]}::1",))


async def until_posted(node: AgentCluster) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while not (await node.admin.list(manifests.EVENT, "default")).items:  # noqa: ASYNC110 - as a person would
            await asyncio.sleep(0.02)


async def until_refused(caplog: pytest.LogCaptureFixture, right: Right) -> None:
    words = f'cannot {right.verb} resource "{right.resource}"'
    async with asyncio.timeout(WAIT_SECONDS):
        while not any(words in getattr(record, "reason", "") for record in caplog.records):  # noqa: ASYNC110 - a log has no event
            await asyncio.sleep(0.02)
