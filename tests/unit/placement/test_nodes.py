"""Nodes as the scheduler sees them: made from GPUNodes, changed by pods that come and go."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpushare.domain.fractions import Dialect, FractionMode, Isolation
from gpushare.domain.gpunode import GPUNode
from gpushare.placement.gpus import Use
from gpushare.placement.nodes import NodeState
from support.placements import ALIYUN, HAMI, alike, device, node_of


@pytest.mark.parametrize(
    ("mode", "memory", "slots", "cores"),
    [
        pytest.param(HAMI, 15109, 10, 100, id="hami"),
        pytest.param(replace(HAMI, memory_scaling=1.5, core_scaling=1.5, slots=3), 22663, 3, 150, id="scaled"),
        pytest.param(replace(HAMI, isolation=Isolation.EXCLUSIVE), 15109, 1, 100, id="not shared"),
        pytest.param(ALIYUN, 14336, 0, 100, id="aliyun: whole units"),
        pytest.param(FractionMode(dialect=Dialect.ALIYUN, unit_mib=256), 15104, 0, 100, id="aliyun: smaller units"),
        pytest.param(replace(ALIYUN, memory_scaling=1.5), 22528, 0, 100, id="aliyun: scaled before it is cut"),
    ],
)
def test_what_a_gpu_gives_out(mode: FractionMode, memory: int, slots: int, cores: int) -> None:
    """As much as its agent tells the kubelet."""
    [gpu] = node_of([device(0, 15109)], mode).gpus

    assert (gpu.traits.memory_mib, gpu.traits.slots, gpu.traits.cores) == (memory, slots, cores)


@pytest.mark.parametrize(
    ("capability", "slots"),
    [pytest.param("7.0", 16, id="few"), pytest.param("7.5", 48, id="many"), pytest.param("", 0, id="not told")],
)
def test_mps_takes_so_many_clients(capability: str, slots: int) -> None:
    """Units do not tell how many containers they become, so the limit of MPS is kept here."""
    [gpu] = node_of([device(0, computeCapability=capability)], replace(ALIYUN, isolation=Isolation.MPS)).gpus

    assert gpu.traits.slots == slots


def test_gpus_by_index() -> None:
    """In the order of their index, those that take part, with the vendor in the name."""
    node = node_of([device(2, product="NVIDIA A10"), device(0), device(1, migEnabled=True)])

    assert [(gpu.index, gpu.traits.model) for gpu in node.gpus] == [(0, "nvidia-tesla t4"), (2, "nvidia a10")]


@pytest.mark.parametrize("ready", ["False", "Unknown"])
def test_not_ready(ready: str) -> None:
    """A node without a ready agent is none for pods, nor is one whose agent was never seen."""
    assert not node_of([device(0)], ready=ready).is_ready
    assert not NodeState.of(
        GPUNode(name="n", status=replace(GPUNode(name="n").status, fractions=HAMI)), {}, {}
    ).is_ready


def test_pods_come_and_go() -> None:
    """The way does not matter; a pod that comes twice is there once."""
    node, one, two = alike(2), {"GPU-node-0": Use(5, 1, 1)}, {"GPU-node-0": Use(7, 2, 1), "GPU-node-1": Use(7, 2, 1)}

    both = node.with_pod("a", one).with_pod("b", two)
    assert both.uses == (Use(12, 3, 2), Use(7, 2, 1))
    assert both.with_pod("a", two).uses == (Use(14, 4, 2), Use(14, 4, 2))
    assert both.without_pod("a") == node.with_pod("b", two)
    assert both.without_pod("x") is both
    assert both.without_pod("b").without_pod("a") == node
