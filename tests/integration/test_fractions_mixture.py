"""Two hundred pods of eight shapes at once on four nodes of both dialects, while pods are deleted and everything restarts.

At every moment no GPU gives out more than it has; afterwards kubelets, agents and scheduler say the same of each pod.
GPUSHARE_MIXTURE_ROUNDS says how many restarts of each kind there are.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.kube import watching
from gpushare.kube.cluster import EventType
from gpushare.kube.watching import Synced
from gpushare.sandbox.app import LOGGER, Options, Sandbox
from gpushare.sandbox.scheduling import resting
from support import gpu_ledgers
from support.disturbances import Disturbances, Window
from support.gpu_ledgers import Ledger
from support.mixed_workloads import WORKLOADS

ROUNDS = int(os.environ.get("GPUSHARE_MIXTURE_ROUNDS", "3"))
GPUS, MEMORY, SLOTS = 8, 15360, 10
HAMI = ("gpu01", "gpu02")
LABELS = {
    **{name: {names.LABEL_HAMI_NODE: "on"} for name in HAMI},
    "gpu03": {names.LABEL_ACK_SCHEDULE: "cgpu", names.LABEL_ACK_PLACEMENT: "binpack"},
    "gpu04": {names.LABEL_ACK_SCHEDULE: "core_mem", names.LABEL_ACK_PLACEMENT: "spread"},
}
PODS = sum(workload.count for workload in WORKLOADS)
OWN_WORDS = (
    "no healthy devices present",
    "unregistered device",
    "requested number of devices unavailable",
    "unknown Device Plugin",
    "previously allocated devices are no longer healthy",
    "rpc error: code = Unavailable",
    "rpc error: code = Cancelled",
    "Node didn't have enough resource",
)
"""Of a kubelet that fails a pod since it, or the plugin, was just not there."""
WAIT_SECONDS = 420.0
LEFTOVER_SECONDS = 20.0
"""After which a scheduler asks again though nothing that it sees has changed: five minutes in other clusters."""


@dataclass(frozen=True)
class Failure:
    """A pod that failed."""

    name: str
    node: str
    bound: float
    seen: float
    message: str

    def is_excused(self, windows: list[Window]) -> bool:
        """Whether the kubelet itself failed it, while something of its node was not there."""
        is_within = any(
            each.node == self.node and self.bound <= each.end and each.begin <= self.seen for each in windows
        )
        return is_within and any(words in self.message for words in OWN_WORDS)


@dataclass
class Observer:
    """Sees everything that happens, and does not allow what must not be."""

    sandbox: Sandbox
    pods: dict[str, Manifest] = field(default_factory=dict)
    """All that there ever were, by name, as they were last."""
    present: set[str] = field(default_factory=set)
    gpu_nodes: dict[str, Manifest] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    looks: Counter[str] = field(default_factory=Counter)
    _bound: dict[str, float] = field(default_factory=dict)

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Looks until the block ends. An AssertionError in it ends the block."""
        async with asyncio.TaskGroup() as group:
            jobs = [group.create_task(job()) for job in (self._follow_pods, self._follow_nodes, self._ask_kubelets)]
            yield
            for job in jobs:
                job.cancel()

    async def held(self, *, with_inits: bool = True) -> Ledger:
        """By the kubelets, now."""
        assert self.sandbox.fleet is not None
        found = [await gpu_ledgers.read_held(node) for node in self.sandbox.fleet.nodes.values()]
        return gpu_ledgers.by_kubelet(sum(found, ()), self.pods, with_inits=with_inits)

    async def _follow_pods(self) -> None:
        async for event, pod in self._follow(manifests.POD, "default"):
            name, status = pod["metadata"]["name"], pod.get("status") or {}
            self.pods[name] = pod
            self.present.add(name)
            if event is EventType.DELETED:
                self.present.discard(name)
            if node := pod["spec"].get("nodeName", ""):
                self._bound.setdefault(name, time.monotonic())
            is_deleted = "deletionTimestamp" in pod["metadata"]  # whose containers end as they were told to
            if status.get("phase") == "Failed" and not is_deleted and name not in self.failures:
                failure = Failure(name, node, self._bound[name], time.monotonic(), status.get("message", ""))
                self.failures[name] = failure

    async def _follow_nodes(self) -> None:
        async for _, gpu_node in self._follow(manifests.GPU_NODE):
            self.gpu_nodes[gpu_node["metadata"]["name"]] = gpu_node
            if "status" in gpu_node:
                self.looks["agents"] += 1
                check(gpu_ledgers.by_agents([gpu_node]), "agent")

    async def _ask_kubelets(self) -> None:
        while True:
            self.looks["kubelets"] += 1
            check(await self.held(), "kubelet")
            await asyncio.sleep(0.2)

    async def _follow(self, kind: manifests.Kind, namespace: str = "") -> AsyncIterator[tuple[EventType, Manifest]]:
        follow = watching.follow(self.sandbox.cluster, kind, namespace, log=logging.getLogger(LOGGER))
        async with contextlib.aclosing(follow) as changes:
            async for change in changes:
                if isinstance(change, Synced):
                    for item in change.items:
                        yield EventType.MODIFIED, item
                else:
                    yield change.event.type, change.event.object


def check(ledger: Ledger, who: str) -> None:
    """No GPU gives out more memory, compute or slots than it has."""
    for uuid, (memory, cores, slots) in gpu_ledgers.totals(ledger).items():
        assert memory <= MEMORY, (who, uuid, ledger[uuid])
        assert cores <= 100, (who, uuid, ledger[uuid])
        assert slots <= max(SLOTS, MEMORY // gpu_ledgers.UNIT_MIB), (who, uuid, ledger[uuid])


async def until(what: str, holds: Callable[[], Awaitable[None]]) -> None:
    """Waits until `holds` no longer raises."""
    last: object = None
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                try:
                    await holds()
                except AssertionError as error:
                    last = error
                else:
                    return
                await asyncio.sleep(0.2)
    except TimeoutError:
        raise AssertionError(f"waited in vain: {what}; last: {last}") from None


@pytest.fixture
async def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Sandbox]:
    """Two nodes in each dialect."""
    monkeypatch.setattr(resting, "_LEFTOVER_SECONDS", LEFTOVER_SECONDS)
    gpus = [{"model": "Tesla-T4", "count": GPUS}]
    nodes = [{"name": name, "labels": labels, "gpus": gpus} for name, labels in LABELS.items()]
    (tmp_path / "scenario.yaml").write_text(yaml.safe_dump({"nodes": nodes}))
    async with Sandbox(Options(scenario=tmp_path / "scenario.yaml")) as sandbox:
        await until("all nodes give out fractions", lambda: offers(sandbox))
        yield sandbox


async def offers(sandbox: Sandbox) -> None:
    for name in LABELS:
        node = await sandbox.cluster.get(manifests.NODE, name)
        assert node is not None
        allocatable = {key: int(value) for key, value in node["status"]["allocatable"].items() if "com/" in key}
        slots, units = (GPUS * SLOTS, 0) if name in HAMI else (0, GPUS * MEMORY // gpu_ledgers.UNIT_MIB)
        assert allocatable.get(names.RESOURCE_GPU) == slots, (name, allocatable)
        assert allocatable.get(names.RESOURCE_ALIYUN_MEM) == units, (name, allocatable)


@pytest.mark.timeout(900)
async def test_mixture(sandbox: Sandbox) -> None:
    """Owners have all their pods in the end; the only ones that failed are those that a kubelet failed in a restart."""
    dice = random.Random(random.random())  # the seed that pytest shows repeats it
    observer, disturbances = Observer(sandbox), Disturbances(sandbox, dice)
    async with observer.watching():
        workloads = [workload.build() for workload in WORKLOADS]
        dice.shuffle(workloads)
        for workload in workloads:
            await sandbox.cluster.create(workload)
        await disturbances.go_on(ROUNDS)

        async def all_run() -> None:
            pods = [observer.pods[name] for name in observer.present]
            running = Counter(pod["metadata"]["labels"]["app"] for pod in pods if phase_of(pod) == "Running")
            waiting = [pod["status"].get("conditions") for pod in pods if phase_of(pod) == "Pending"]
            assert running == {workload.name: workload.count for workload in WORKLOADS}, waiting[:3]

        await until("all pods run", all_run)
        await until("all books agree", lambda: agree(observer))

    excused = [failure for failure in observer.failures.values() if failure.is_excused(disturbances.windows)]
    told = (
        f"{dict(disturbances.done)}, {len(excused)} pods failed by kubelets in restarts, looks {dict(observer.looks)}"
    )
    logging.getLogger(LOGGER).info(told)
    assert list(observer.failures.values()) == excused, disturbances.windows


async def agree(observer: Observer) -> None:
    """Kubelets, agents and scheduler say the same of each pod, and whatever they name is there."""
    held = await observer.held()
    running = {name for name in observer.present if phase_of(observer.pods[name]) == "Running"}
    assert {pod for of_gpu in held.values() for pod in of_gpu} == running
    lasting = gpu_ledgers.without_slots(await observer.held(with_inits=False))
    assert differences(gpu_ledgers.by_agents(observer.gpu_nodes.values()), lasting) == {}
    booked = await gpu_ledgers.by_scheduler(observer.sandbox.cluster)
    assert booked is not None
    assert differences(booked, gpu_ledgers.memory_of(held)) == {}


def phase_of(pod: Manifest) -> str:
    """As its kubelet says it."""
    return str((pod.get("status") or {}).get("phase", ""))


def differences(one: Mapping[str, Mapping[str, Any]], other: Mapping[str, Mapping[str, Any]]) -> dict[Any, Any]:
    """What each says, by GPU and pod, where that is not the same."""
    flat = [
        {(uuid, pod): amount for uuid, of_gpu in ledger.items() for pod, amount in of_gpu.items()}
        for ledger in (one, other)
    ]
    return {
        key: (flat[0].get(key), flat[1].get(key)) for key in flat[0] | flat[1] if flat[0].get(key) != flat[1].get(key)
    }
