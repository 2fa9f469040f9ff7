"""Which GPU comes first. The rows are pairs of GPUs, as HAMi's own tests compare them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import pytest

from gpushare.allocation import Topology
from gpushare.domain.fractions import Dialect, FractionMode, Placement
from gpushare.placement.fitting import fit
from gpushare.placement.gpus import Use
from gpushare.placement.nodes import NodeState
from gpushare.placement.policies import order_of
from gpushare.placement.shapes import Policy
from support.placements import alike, device, hami, node_of, request_of


class Card(NamedTuple):
    """How full a GPU is, in tenths, and where."""

    full: int
    numa: int


def pick(policy: str, cards: list[Card], *, bind: bool = False) -> int:
    """Index of the GPU that a container gets; `policy` empty: as the node does it."""
    annotations = {"hami.io/gpu-scheduler-policy": policy, "nvidia.com/numa-bind": str(bind)}
    devices = [device(index, 1000, numaNode=card.numa) for index, card in enumerate(cards)]
    pods = {f"pod-{n}": {f"GPU-{n}": Use(card.full * 100, card.full * 10, card.full)} for n, card in enumerate(cards)}
    found = fit(node_of(devices, pods=pods), request_of(hami(gpus=1, mem=1), annotations=annotations))
    assert found.containers is not None, found.message
    return int(found.containers["main"][0].uuid.removeprefix("GPU-"))


BUSY_0, BUSY_1 = Card(5, 0), Card(5, 1)
IDLE_0, IDLE_1 = Card(0, 0), Card(0, 1)


@pytest.mark.parametrize(
    ("policy", "bind", "cards", "expected"),
    [
        pytest.param("binpack", False, [BUSY_0, IDLE_0], 0, id="binpack: fuller"),
        pytest.param("binpack", False, [IDLE_0, BUSY_0], 1, id="binpack: fuller, other way round"),
        pytest.param("binpack", False, [BUSY_0, IDLE_1], 0, id="binpack: score before NUMA"),
        pytest.param("binpack", False, [BUSY_0, BUSY_1], 1, id="binpack: NUMA tie"),
        pytest.param("binpack", False, [BUSY_1, BUSY_0], 0, id="binpack: NUMA tie, other way round"),
        pytest.param("binpack", False, [BUSY_0, BUSY_0], 1, id="binpack: index tie"),
        pytest.param("spread", False, [BUSY_0, IDLE_0], 1, id="spread: emptier"),
        pytest.param("spread", False, [IDLE_0, BUSY_1], 0, id="spread: score before NUMA"),
        pytest.param("spread", False, [IDLE_0, IDLE_1], 1, id="spread: NUMA tie"),
        pytest.param("spread", False, [IDLE_0, IDLE_0], 1, id="spread: index tie"),
        pytest.param("mutex", False, [IDLE_0, BUSY_1], 0, id="mutex: idle"),
        pytest.param("mutex", False, [IDLE_0, IDLE_1], 1, id="mutex: NUMA tie"),
        pytest.param("binpack", True, [BUSY_1, IDLE_0], 1, id="bound, binpack: lowest NUMA"),
        pytest.param("binpack", True, [IDLE_0, BUSY_0, BUSY_1], 1, id="bound, binpack: fuller of the lowest"),
        pytest.param("spread", True, [IDLE_0, BUSY_1], 1, id="bound, spread: highest NUMA"),
        pytest.param("spread", True, [IDLE_0, BUSY_1, IDLE_1], 2, id="bound, spread: emptier of the highest"),
        pytest.param("numa", False, [IDLE_0, BUSY_1], 1, id="numa: highest"),
        pytest.param("numa", False, [BUSY_1, IDLE_1], 1, id="numa: index tie, not score"),
        pytest.param("binpack,numa", False, [BUSY_0, IDLE_1], 0, id="binpack,numa: score first"),
        pytest.param("binpack,numa", False, [BUSY_0, BUSY_1], 1, id="binpack,numa: NUMA second"),
        pytest.param("spread,numa", False, [IDLE_0, BUSY_1], 0, id="spread,numa: score first"),
        pytest.param("spread,numa", False, [IDLE_0, IDLE_1], 1, id="spread,numa: NUMA second"),
        pytest.param("numa,spread", False, [IDLE_0, BUSY_1], 1, id="numa,spread: NUMA first"),
        pytest.param("numa,spread", False, [BUSY_1, IDLE_1, IDLE_0], 1, id="numa,spread: score second"),
        pytest.param("numa,binpack", False, [BUSY_1, IDLE_1, IDLE_0], 0, id="numa,binpack: score second"),
        pytest.param("spread,numa", True, [IDLE_0, BUSY_1], 1, id="spread,numa, bound: NUMA first"),
        pytest.param("binpack,numa", True, [BUSY_1, IDLE_0], 1, id="binpack,numa, bound: as bound and packed"),
        pytest.param("mutex,spread", False, [BUSY_0, IDLE_0], 1, id="mutex,spread: idle"),
        pytest.param("mutex,binpack", False, [BUSY_0, IDLE_0], 1, id="mutex,binpack: idle, though the other is fuller"),
        pytest.param("mutex,topology-aware", False, [IDLE_0, IDLE_1], 1, id="no topology: spread"),
        pytest.param("mutex,spread", True, [IDLE_0, IDLE_1], 1, id="mutex,spread, bound"),
        pytest.param("", False, [BUSY_0, IDLE_0], 0, id="as the node does it"),
    ],
)
def test_order(policy: str, bind: bool, cards: list[Card], expected: int) -> None:
    """HAMi sorts and takes the last; here is what it takes."""
    assert pick(policy, cards, bind=bind) == expected


@pytest.mark.parametrize(
    ("placement", "policy", "expected"),
    [
        pytest.param(Placement.SPREAD, "", (Policy.SPREAD,), id="the node's"),
        pytest.param(Placement.SPREAD, "binpack", (Policy.BINPACK,), id="the pod's before it"),
        pytest.param(Placement.BINPACK, "topology-aware", (Policy.SPREAD,), id="spread where no word sorts"),
        pytest.param(Placement.BINPACK, "mutex", (Policy.MUTEX,), id="mutex alone sorts"),
    ],
)
def test_keys(placement: Placement, policy: str, expected: tuple[Policy, ...]) -> None:
    """Who decides by what GPUs are sorted."""
    request = request_of(hami(gpus=1, mem=1), annotations={"hami.io/gpu-scheduler-policy": policy})

    assert order_of(request.gpu_policy, placement, is_bound=False) == expected


def test_weights() -> None:
    """With more weight on memory, another GPU is the fuller one."""
    devices = [device(0, 100), device(1, 100)]
    pods = {"a": {"GPU-0": Use(10, 90, 1)}, "b": {"GPU-1": Use(20, 10, 7)}}
    node = node_of(devices, pods=pods)

    def choose(weights: str, policy: str) -> str:
        annotations = {"hami.io/device-scoring-weights": weights, "hami.io/gpu-scheduler-policy": policy}
        found = fit(node, request_of(hami(gpus=1, percent=40), annotations=annotations))
        assert found.containers is not None
        return found.containers["main"][0].uuid

    assert choose("slot=1,core=1,memory=1", "binpack") == "GPU-0"
    assert choose("slot=1,core=1,memory=3", "binpack") == "GPU-1"
    assert choose("slot=1,core=1,memory=3", "spread") == "GPU-0"
    assert choose("slot=1,core=3,memory=1", "binpack") == "GPU-0"


def linked(*matrix: list[int]) -> NodeState:
    return replace(alike(len(matrix), name=""), topology=Topology.from_pair_scores(matrix))


TOPOLOGY = {"hami.io/gpu-scheduler-policy": "topology-aware"}
TRIANGLE = linked([0, 10, 100], [10, 0, 20], [100, 20, 0])


@pytest.mark.parametrize(
    ("node", "gpus", "expected"),
    [
        pytest.param(TRIANGLE, 1, {"GPU-1"}, id="one: where it is missed least"),
        pytest.param(TRIANGLE, 2, {"GPU-0", "GPU-2"}, id="two: the best pair"),
        pytest.param(TRIANGLE, 3, {"GPU-0", "GPU-1", "GPU-2"}, id="all"),
        pytest.param(linked([0, 0, 0], [0, 0, 0], [0, 0, 0]), 2, {"GPU-0", "GPU-1"}, id="nothing is linked"),
    ],
)
def test_topology(node: NodeState, gpus: int, expected: set[str]) -> None:
    """GPUs that are close to each other go together."""
    found = fit(node, request_of(hami(gpus=gpus, mem=1), annotations=TOPOLOGY))

    assert found.containers is not None
    assert {grant.uuid for grant in found.containers["main"]} == expected


def test_topology_on_one_numa_node() -> None:
    """The best pair is none where its GPUs are on two NUMA nodes and the pod binds to one."""
    devices = [device(index, numaNode=numa) for index, numa in enumerate((0, 1, 0))]
    node = replace(node_of(devices), topology=Topology.from_pair_scores([[0, 100, 10], [100, 0, 10], [10, 10, 0]]))
    found = fit(node, request_of(hami(gpus=2, mem=1), annotations={**TOPOLOGY, "nvidia.com/numa-bind": "true"}))

    assert found.containers is not None
    assert {grant.uuid for grant in found.containers["main"]} == {"GPU-0", "GPU-2"}


def test_topology_among_those_that_fit() -> None:
    """The best pair is none where one of the two is full."""
    node = TRIANGLE.with_pod("full", {"GPU-0": Use(15360, 0, 1)})
    found = fit(node, request_of(hami(gpus=2, mem=1), annotations=TOPOLOGY))

    assert found.containers is not None
    assert {grant.uuid for grant in found.containers["main"]} == {"GPU-1", "GPU-2"}


def test_node_spreads() -> None:
    """What the node's configuration says holds for pods that say nothing."""
    node = alike(2, mode=FractionMode(dialect=Dialect.HAMI, placement=Placement.SPREAD))
    request = request_of(hami(gpus=1, mem=1))
    uuids = set()
    for uid in ("a", "b"):
        found = fit(node, request)
        uuids |= found.holding.keys()
        node = node.with_pod(uid, found.holding)

    assert len(uuids) == 2
