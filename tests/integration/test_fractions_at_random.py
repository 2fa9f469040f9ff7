"""A mixture of pods that ask for parts of GPUs, all at once, in a whole sandbox, while pods are deleted and programs restart.

At every moment no GPU gives out more than it has; in the end scheduler, GPUNodes and decisions say the same.
"""

from __future__ import annotations

import asyncio
import json
import random
import ssl
from base64 import b64decode
from collections import Counter, defaultdict
from typing import Any, Final

import pytest

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.fractions import Decision
from gpushare.domain.manifests import Manifest
from gpushare.errors import ClusterUnavailable
from gpushare.kube.http import Address, Connection
from gpushare.sandbox.apiserver.objects.services import address_of
from gpushare.sandbox.app import Options, Sandbox
from gpushare.sandbox.scheduling import resting
from support.clusters import NAMESPACE
from support.placements import hami
from support.schedulers import pod

NODES: Final = 4
PODS: Final = 64
MEMORY: Final = 15360
SHAPES: Final = tuple(
    [
        hami(gpus=1, mem=memory, cores=cores)
        for memory, cores in ((1000, 10), (2000, 0), (3000, 20), (5000, 0), (700, 5))
    ]
    + [hami(gpus=2, mem=1000, cores=10), hami(percent=20, cores=5), hami(mem=1500)]
)
WAIT_SECONDS: Final = 420.0
SEED: Final = 7


class Mixture:
    """The pods, and what happens to them."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._cluster = sandbox.cluster
        self._dice = random.Random(SEED)
        self.most: Counter[str] = Counter()
        """The most memory that each GPU ever gave out, by what decisions say."""

    async def prepare(self) -> None:
        """All nodes but one give out fractions in HAMi's words; the programs of the operator go to that one."""
        for node in (await self._cluster.list(manifests.NODE)).items[:NODES]:
            body = {"metadata": {"labels": {names.LABEL_HAMI_NODE: "on"}}}
            await self._cluster.patch(manifests.NODE, node["metadata"]["name"], body)

        async def served() -> bool:
            nodes = (await self._cluster.list(manifests.GPU_NODE)).items
            return sum(bool(node.get("status", {}).get("fractions")) for node in nodes) == NODES

        await self.until(served)

    async def create(self, count: int) -> None:
        """Pods of all shapes, in no order."""
        wanted = [SHAPES[number % len(SHAPES)] for number in range(count)]
        self._dice.shuffle(wanted)
        for number, container in enumerate(wanted):
            await asyncio.sleep(0.02)
            body = pod(f"p{number:03}", {**container, "image": "x"}, terminationGracePeriodSeconds=0)
            while True:
                try:
                    await self._cluster.create(body)
                    break
                except ClusterUnavailable:
                    # The only replica restarts: who creates pods has to try again, as controllers do.
                    await asyncio.sleep(0.1)

    async def disturb(self, times: int) -> int:
        """Deletes pods, and restarts scheduler, agents and kubelets now and then. Returns how many pods it has deleted."""
        deleted = 0
        for turn in range(times):
            await asyncio.sleep(0.3)
            alive = [found["metadata"]["name"] for found in await self.pods()]
            for name in self._dice.sample(alive, min(2, len(alive))):
                deleted += await self._cluster.delete(manifests.POD, name, "default")
            if turn % 4 == 1:
                await self._restart(names.SCHEDULER)
            if turn % 4 == 2:
                await self._restart(names.DAEMONSET_DEVICE_PLUGIN)
            if turn % 4 == 3:
                assert self._sandbox.fleet is not None
                await self._dice.choice([*self._sandbox.fleet.nodes.values()]).restart()
        return deleted

    async def _restart(self, app: str) -> None:
        found = await self._cluster.list(manifests.POD, NAMESPACE, labels=f"app={app}")
        if found.items:
            await self._cluster.delete(manifests.POD, self._dice.choice(found.items)["metadata"]["name"], NAMESPACE)

    async def pods(self) -> list[Manifest]:
        """Ours."""
        return list((await self._cluster.list(manifests.POD, "default")).items)

    async def until(self, holds: Any) -> None:
        async with asyncio.timeout(WAIT_SECONDS):
            while not await holds():  # noqa: ASYNC110 - what it waits for is read, and tells nobody
                await asyncio.sleep(0.2)

    async def watch_over(self) -> None:
        """No GPU ever gives out more than it has."""
        while True:
            self.check(await self.pods())
            await asyncio.sleep(0.1)

    def check(self, pods: list[Manifest]) -> dict[str, tuple[int, int, int]]:
        """Memory, compute and containers by GPU, as the decisions of pods that have not ended say."""
        memory, cores, slots = Counter[str](), Counter[str](), Counter[str]()
        for found in pods:
            for grants in _decision_of(found).values():
                for grant in grants:
                    memory[grant.uuid] += grant.memory_mib
                    cores[grant.uuid] += grant.cores
                    slots[grant.uuid] += 1
        assert all(value <= MEMORY for value in memory.values()), memory
        assert all(value <= 100 for value in cores.values()), cores
        assert all(value <= 10 for value in slots.values()), slots
        self.most |= memory
        return {uuid: (memory[uuid], cores[uuid], slots[uuid]) for uuid in memory}

    async def reported(self) -> dict[str, tuple[int, int, int]]:
        """The same by what the agents say."""
        found: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        for node in (await self._cluster.list(manifests.GPU_NODE)).items:
            uuids = {device["index"]: device["uuid"] for device in node["status"]["devices"]}
            for gpu in node["status"].get("allocations", ()):
                for held in gpu["containers"]:
                    sums = found[uuids[gpu["index"]]]
                    sums[0] += held.get("memoryMiB", 0)
                    sums[1] += held.get("cores", 0)
                    sums[2] += 1
        return {uuid: (sums[0], sums[1], sums[2]) for uuid, sums in found.items()}

    async def booked(self) -> dict[str, int] | None:
        """Memory by what the scheduler says; None while it restarts."""
        secret = await self._cluster.get(manifests.SECRET, names.SECRET_SCHEDULER, NAMESPACE)
        service = await self._cluster.get(manifests.SERVICE, names.SCHEDULER, NAMESPACE)
        found = await self._cluster.list(manifests.POD, NAMESPACE, labels=f"app={names.SCHEDULER}")
        assert secret is not None
        assert service is not None
        address = address_of(service, 443, found.items)
        if address is None:
            return None
        context = ssl.create_default_context(cadata=b64decode(secret["data"]["ca.crt"]).decode())
        connection = await Connection.open(Address.parse(f"https://{address}", context, names.SCHEDULER))
        try:
            await connection.request("GET", "/inspect", [("Host", names.SCHEDULER)], b"")
            answer = json.loads(await connection.body())
        finally:
            await connection.close()
        return {gpu["uuid"]: gpu["usedGPU"] for node in answer["nodes"] for gpu in node["devs"] if gpu["usedGPU"]}


def _decision_of(found: Manifest) -> dict[str, tuple[Any, ...]]:
    text = found["metadata"].get("annotations", {}).get(names.ANNOTATION_DECISION)
    if text is None or found["status"].get("phase") in {"Succeeded", "Failed"}:
        return {}
    return dict(Decision.from_annotation(text).containers)


@pytest.mark.timeout(600)
async def test_a_mixture(monkeypatch: pytest.MonkeyPatch) -> None:
    """None is left waiting that fits, nobody has more than there is, and only a kubelet without its agent refuses pods."""
    # After which a scheduler asks again though nothing that it sees has changed: five minutes in other clusters.
    monkeypatch.setattr(resting, "_LEFTOVER_SECONDS", 20.0)
    async with Sandbox(Options(nodes=NODES + 1)) as sandbox:
        mixture = Mixture(sandbox)
        await mixture.prepare()
        watching = asyncio.create_task(mixture.watch_over())
        creating = asyncio.create_task(mixture.create(PODS))
        deleted = await mixture.disturb(8)
        await creating
        left = PODS - deleted

        async def all_run() -> bool:
            pods = await mixture.pods()
            assert not watching.done(), watching.exception()
            failed = [found["status"] for found in pods if found["status"].get("phase") == "Failed"]
            assert all(status["reason"] == "UnexpectedAdmissionError" for status in failed), failed
            assert len(failed) <= PODS // 8, failed
            running = sum(found["status"].get("phase") == "Running" for found in pods)
            return running == left - len(failed)

        await mixture.until(all_run)

        async def all_agree() -> bool:
            decided = mixture.check(await mixture.pods())
            booked = {uuid: memory for uuid, (memory, _, _) in decided.items()}
            return await mixture.reported() == decided and await mixture.booked() == booked

        await mixture.until(all_agree)
        watching.cancel()
