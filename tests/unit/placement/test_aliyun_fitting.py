"""Alibaba's dialect on nodes: what its documentation shows, and what hurts users of the open scheduler there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from gpushare.domain.fractions import Dialect, FractionMode, Grant, Isolation, Placement
from gpushare.placement.fitting import fit
from gpushare.placement.gpus import Use
from gpushare.placement.nodes import NodeState
from gpushare.placement.shapes import PodRequest
from support.placements import ALIYUN, alike, aliyun, device, hami, node_of, request_of

SPREAD = replace(ALIYUN, placement=Placement.SPREAD)
MIB = replace(ALIYUN, unit_mib=1)


def place(node: NodeState, requests: Iterable[PodRequest]) -> NodeState:
    """The node with all of these pods, one after the other."""
    for number, request in enumerate(requests):
        found = fit(node, request)
        assert found.containers is not None, found.message
        node = node.with_pod(f"pod-{number}", found.holding)
    return node


def units(node: NodeState) -> list[int]:
    assert node.mode is not None
    return [use.memory_mib // node.mode.unit_mib for use in node.uses]


@pytest.mark.parametrize(
    ("mode", "pods", "expected"),
    [
        pytest.param(ALIYUN, [3] * 8, [15, 9, 0, 0], id="binpack, as documented"),
        pytest.param(SPREAD, [4] * 3, [4, 4, 4, 0], id="spread: three GPUs"),
        pytest.param(ALIYUN, [4] * 3, [12, 0, 0, 0], id="binpack: one GPU"),
        pytest.param(ALIYUN, [10, 8, 5, 7], [15, 15, 0, 0], id="best fit"),
        pytest.param(SPREAD, [4, 4, 4, 4, 1], [5, 4, 4, 4], id="spread: round again"),
    ],
)
def test_placement(mode: FractionMode, pods: list[int], expected: list[int]) -> None:
    """Units on four GPUs of 15 GiB each."""
    assert units(place(alike(4, mode=mode), [request_of(aliyun(units=count)) for count in pods])) == expected


@pytest.mark.parametrize(
    ("pods", "count", "expected"),
    [
        pytest.param([8], "2", [4, 4, 0, 0], id="two GPUs"),
        pytest.param([8, 20], "2", [14, 14, 0, 0], id="the same two, packed"),
        pytest.param([12, 12], "4", [6, 6, 6, 6], id="all GPUs"),
    ],
)
def test_several_gpus(pods: list[int], count: str, expected: list[int]) -> None:
    """The label of the pod spreads its memory evenly over GPUs of one node."""
    labels = {"aliyun.com/gpu-count": count}
    requests = [request_of(aliyun(units=amount), labels=labels) for amount in pods]
    found = fit(alike(4, mode=ALIYUN), requests[0])

    assert found.containers is not None
    assert [grant.units for grant in found.containers["main"]] == [pods[0] // int(count)] * int(count)
    assert sorted(units(place(alike(4, mode=ALIYUN), requests))) == sorted(expected)


def test_all_containers_on_one_gpu() -> None:
    """A pod with two containers has one GPU, as its annotation and its tools know only one (gpushare R2)."""
    request = request_of(aliyun("a", units=8), aliyun("b", units=6))

    found = fit(alike(2, mode=ALIYUN), request)
    assert found.containers == {"a": (Grant("GPU-node-0", 8192, 0, 8),), "b": (Grant("GPU-node-0", 6144, 0, 6),)}
    assert fit(alike(2, mode=ALIYUN), request_of(aliyun("a", units=8), aliyun("b", units=8))).message == (
        "2/2 CardInsufficientMemory"
    )


def test_memory_on_an_init_container_only() -> None:
    """It is placed and counted like any other (gpushare R13)."""
    found = fit(alike(1, mode=ALIYUN), request_of({"name": "app"}, init=[aliyun("init", units=3)]))

    assert found.containers == {"init": (Grant("GPU-node-0", 3072, 0, 3),)}
    assert found.holding["GPU-node-0"].memory_mib == 3072


def test_each_gpu_has_its_own_size() -> None:
    """Mixed GPUs count with their own units, and parts of units are no units (gpushare R10)."""
    node = node_of([device(0, 15109), device(1, 81559)], ALIYUN)

    assert [gpu.traits.memory_mib // 1024 for gpu in node.gpus] == [14, 79]
    assert fit(node, request_of(aliyun(units=15))).holding.keys() == {"GPU-1"}
    assert fit(node, request_of(aliyun(units=80))).message == "2/2 CardInsufficientMemory"


def test_small_units() -> None:
    """A node that counts in MiB."""
    assert fit(alike(1, mode=MIB), request_of(aliyun(units=3000))).holding["GPU-node-0"].memory_mib == 3000


def test_more_used_than_there_is() -> None:
    """A GPU on which too much is used, as after its unit has changed, is full and not endless (gpushare R5)."""
    node = alike(1, mode=ALIYUN).with_pod("a", {"GPU-node-0": Use(99999, 0, 1, 0, 1)})

    assert fit(node, request_of(aliyun(units=1))).message == "1/1 CardInsufficientMemory"


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param(aliyun(units=1), aliyun(units=1), "", id="memory only"),
        pytest.param(aliyun(units=1, cores=20), aliyun(units=1, cores=80), "", id="with compute"),
        pytest.param(
            aliyun(units=1, cores=20), aliyun(units=1), "ComputeSharingConflict", id="memory only after compute"
        ),
        pytest.param(
            aliyun(units=1), aliyun(units=1, cores=20), "ComputeSharingConflict", id="compute after memory only"
        ),
        pytest.param(
            aliyun(units=1, cores=20), aliyun(units=1, cores=85), "1/1 CardInsufficientCore", id="too much compute"
        ),
    ],
)
def test_compute(first: dict[str, Any], second: dict[str, Any], expected: str) -> None:
    """Pods with and without a share of compute do not go together on one node."""
    node = place(alike(1, mode=ALIYUN), [request_of(first)])

    assert fit(node, request_of(second)).message == expected


def test_compute_is_not_served() -> None:
    """`cgpu` holds memory only; `core_mem` both."""
    node = alike(1, mode=replace(ALIYUN, compute=False))

    assert fit(node, request_of(aliyun(units=1, cores=20))).message == "ComputeNotServed"
    assert fit(node, request_of(aliyun(units=1))).containers is not None


def test_exclusive_tier_mixes() -> None:
    """Who has a GPU alone needs no limit of compute, so all may come."""
    node = alike(2, mode=FractionMode(dialect=Dialect.ALIYUN, isolation=Isolation.EXCLUSIVE))
    node = place(node, [request_of(aliyun(units=1)), request_of(aliyun(units=1, cores=20))])

    assert units(node) == [1, 1]
    assert fit(node, request_of(aliyun(units=1))).message == "2/2 ExclusiveDeviceAllocateConflict"


def test_packed_on_one_numa_node() -> None:
    """Binding to a NUMA node does not turn packing into spreading."""
    node = node_of([device(index, numaNode=index // 2) for index in range(4)], ALIYUN)
    node = node.with_pod("a", {"GPU-1": Use(1024, 0, 1, 0, 1)})
    request = request_of(aliyun(units=1), annotations={"nvidia.com/numa-bind": "true"})

    assert fit(node, request).holding.keys() == {"GPU-1"}


def test_hami_pods_stay_away() -> None:
    """A pod in the other dialect, and vice versa."""
    assert fit(alike(1, mode=ALIYUN), request_of(hami(gpus=1, mem=1))).message == "DialectMismatch"
    assert fit(alike(1), request_of(aliyun(units=1))).message == "DialectMismatch"


def test_best_fit_goes_by_free_memory() -> None:
    """The smallest that is large enough, whatever part of it is used."""
    node = node_of([device(0, 81920), device(1, 15360)], ALIYUN).with_pod("a", {"GPU-0": Use(71680, 0, 1, 0, 1)})

    assert fit(node, request_of(aliyun(units=2))).holding.keys() == {"GPU-0"}
    assert fit(node, request_of(aliyun(units=12))).holding.keys() == {"GPU-1"}
