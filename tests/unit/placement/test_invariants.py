"""Whatever pods come and go: no GPU is over what it has, and no book depends on the way that it was kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings

from gpushare.domain.fractions import Decision, Dialect, FractionMode, Placement
from gpushare.placement.counting import charge_of, holding_of
from gpushare.placement.fitting import Fit, fit
from gpushare.placement.gpus import Use
from gpushare.placement.index import FitIndex
from gpushare.placement.nodes import NodeState
from gpushare.placement.preempting import Removable, choose_victims
from gpushare.placement.quotas import Quota
from gpushare.placement.requests import read_request
from gpushare.placement.shapes import PodRequest, kinds_of
from support.placements import SETTINGS, aliyun, device, hami, node_of, pod_of

POLICIES = ["", "binpack", "spread", "mutex", "numa", "numa,binpack", "mutex,topology-aware"]

seeds = st.integers(0, 2**32).map(Random)


def devices_of(random: Random, node: str = "a") -> list[dict[str, Any]]:
    return [
        device(
            index,
            random.choice([8192, 15360, 40960]),
            node,
            numaNode=random.randint(0, 1),
            health={"healthy": random.random() < 0.9},
        )
        for index in range(random.randint(1, 4))
    ]


def mode_of(random: Random) -> FractionMode:
    return FractionMode(
        dialect=random.choice(list(Dialect)),
        slots=random.randint(1, 4),
        placement=random.choice(list(Placement)),
        memory_scaling=random.choice([1.0, 1.5]),
        core_scaling=random.choice([1.0, 2.0]),
    )


def pods_of(mode: FractionMode, random: Random) -> Iterator[dict[str, Any]]:
    """Pods in the node's dialect, some of which can never run."""
    for _ in range(random.randint(1, 12)):
        notes = {
            "hami.io/gpu-scheduler-policy": random.choice(POLICIES),
            "nvidia.com/numa-bind": random.choice(["", "", "true"]),
            "nvidia.com/nouse-gpuuuid": random.choice(["", "", "GPU-a-0", "GPU-c-1"]),
            "nvidia.com/use-gpuuuid": random.choice(["", "", "", "GPU-a-1,GPU-b-0,GPU-c-0"]),
            "hami.io/node-scheduler-policy": random.choice(["binpack", "spread"]),
        }
        labels = {"aliyun.com/gpu-count": random.choice("112")} if mode.dialect is Dialect.ALIYUN else {}
        build = _aliyun if mode.dialect is Dialect.ALIYUN else _hami
        init = [build(f"init{number}", random) for number in range(random.choice([0, 0, 0, 1, 2]))]
        apps = [build(f"app{number}", random) for number in range(random.choice([1, 1, 1, 2, 3]))]
        yield pod_of(*apps, init=init, labels=labels, annotations=notes)


def _hami(name: str, random: Random) -> dict[str, Any]:
    return hami(
        name,
        random.choice([1, 1, 1, 2, 3]),
        mem=random.choice([None, 1, 1000, 4000, 8000, 15360]),
        percent=random.choice([None, 10, 50, 100]),
        cores=random.choice([None, 0, 10, 30, 50, 100]),
        sidecar=name.startswith("init") and random.random() < 0.5,
    )


def _aliyun(name: str, random: Random) -> dict[str, Any]:
    cores = random.choice([None, None, None, 10, 50, 100])
    return aliyun(
        name, random.choice([2, 4, 6]), cores=cores, sidecar=name.startswith("init") and random.random() < 0.5
    )


def check(node: NodeState) -> None:
    """What must never be otherwise."""
    for gpu, use in zip(node.gpus, node.uses, strict=True):
        assert 0 <= use.memory_mib <= gpu.traits.memory_mib
        assert 0 <= use.cores <= gpu.traits.cores
        assert use.slots <= gpu.traits.slots or not gpu.traits.slots
        # Alone is alone: another container of the same pod in another phase at most.
        holders = [pod for pod in node.pods.values() if gpu.uuid in pod]
        assert not use.alone or len(holders) == 1


@settings(max_examples=200, deadline=None)
@given(seeds)
def test_books(random: Random) -> None:
    """Pods come as they fit and go at random: nothing is ever over-used, and the state is that of a fresh start."""
    found, mode = devices_of(random), mode_of(random)
    node = node_of(found, mode)
    for number, pod in enumerate(pods_of(mode, random)):
        request = read_request(pod, SETTINGS).request
        if request is None:
            continue
        answer = fit(node, request)
        if answer.containers is not None:
            check_answer(pod, request, answer)
            node = node.with_pod(f"pod-{number}", answer.holding)
            check(node)
        if node.pods and random.random() < 0.3:
            node = node.without_pod(random.choice(sorted(node.pods)))

    assert node == node_of(found, mode, pods=node.pods)
    for uid in tuple(node.pods):
        node = node.without_pod(uid)
    assert set(node.uses) <= {Use()}


def check_answer(pod: dict[str, Any], request: PodRequest, answer: Fit) -> None:
    """Each container gets different GPUs, and what is written down is enough to find the same again after a restart."""
    assert answer.containers is not None
    assert 0 <= answer.score <= 10
    for container in request.containers:
        assert len({grant.uuid for grant in answer.containers[container.name]}) == container.gpus
    decision = Decision(pod_uid="x", dialect=request.dialect, shape=request.shape, containers=answer.containers)
    containers = Decision.from_annotation(decision.to_annotation()).containers
    assert holding_of(containers, kinds_of(pod)) == answer.holding
    assert charge_of(containers, kinds_of(pod)) == answer.charge


@settings(max_examples=100, deadline=None)
@given(seeds)
def test_index(random: Random) -> None:
    """The index says of each node what the node itself says, at any moment."""
    mode, index = mode_of(random), FitIndex()
    nodes = {name: node_of(devices_of(random, name), mode, name=name) for name in ("a", "b", "c")}
    # Looks like another, but for its UUIDs.
    nodes["d"] = replace(
        nodes["c"], name="d", gpus=tuple(replace(gpu, uuid=f"{gpu.uuid}-d") for gpu in nodes["c"].gpus)
    )
    for node in nodes.values():
        index.put(node)
    room = Quota(memory_mib=random.choice([None, 20000]), cores=random.choice([None, 100]))
    for number, pod in enumerate(pods_of(mode, random)):
        request = read_request(pod, SETTINGS).request
        if request is None:
            continue
        direct = {name: fit(node, request) for name, node in nodes.items()}
        answer = index.find(request, nodes)
        assert answer.scores == {name: one.score for name, one in direct.items() if one.containers is not None}
        assert answer.failed == {name: one.message for name, one in direct.items() if one.containers is None}

        direct = {name: fit(node, request, room) for name, node in nodes.items()}
        answer = index.find(request, nodes, room)
        assert answer.scores == {name: one.score for name, one in direct.items() if one.containers is not None}
        assert answer.failed.keys() == nodes.keys() - answer.scores.keys()
        for name in answer.scores:
            assert room.takes(direct[name].charge)
        if answer.scores:
            name = random.choice(sorted(answer.scores))
            nodes[name] = nodes[name].with_pod(f"pod-{number}", direct[name].holding)
            index.put(nodes[name])


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_victims(random: Random) -> None:
    """Without its victims a node takes the pod, and none of them goes for nothing."""
    mode = mode_of(random)
    node = node_of(devices_of(random), mode)
    requests = [read_request(pod, SETTINGS).request for pod in pods_of(mode, random)]
    *others, wanted = [request for request in requests if request is not None] or [None]
    if wanted is None:
        return
    for number, other in enumerate(others):
        node = node.with_pod(f"pod-{number}", fit(node, other).holding)
    removable = [Removable(uid=uid, priority=random.randint(0, 3)) for uid in node.pods]

    victims = choose_victims(node, wanted, removable)
    empty = node
    for uid in [victim.uid for victim in victims] if victims is not None else list(node.pods):
        empty = empty.without_pod(uid)
    if victims is None:
        assert fit(empty, wanted).containers is None
        return
    assert fit(empty, wanted).containers is not None
    for victim in victims:
        assert fit(empty.with_pod(victim.uid, node.pods[victim.uid]), wanted).containers is None
