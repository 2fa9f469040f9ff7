"""Figures for GPUs and nodes; the first ones are HAMi's own."""

from __future__ import annotations

import pytest

from gpushare.domain.fractions import Placement
from gpushare.placement.gpus import Traits, Use
from gpushare.placement.scoring import build_priorities, gpu_score, node_score, sums_of
from gpushare.placement.shapes import Weights


def traits(slots: int, cores: int, memory: int) -> Traits:
    return Traits("NVIDIA-T4", memory, cores, slots, numa=-1, is_healthy=True, is_cordoned=False)


@pytest.mark.parametrize(
    ("gpu", "use", "weights", "expected"),
    [
        pytest.param(traits(0, 0, 0), Use(), Weights(), 0, id="zero capacity"),
        pytest.param(traits(10, 4, 8192), Use(2048, 1, 2), Weights(), 7.0, id="no request"),
        pytest.param(
            traits(10, 4, 8192), Use(2048 + 1024, 1 + 1, 2 + 1), Weights(), 11.75, id="one request, however many GPUs"
        ),
        pytest.param(traits(10, 10, 10000), Use(5000, 2, 1), Weights(), 8.0, id="percentage"),
        pytest.param(traits(10, 10, 10000), Use(1000 + 2000, 1 + 2, 2), Weights(), 8.0, id="two requests"),
        pytest.param(traits(10, 100, 100), Use(50, 90, 2), Weights(), 16, id="A"),
        pytest.param(traits(10, 100, 100), Use(60, 10, 8), Weights(), 15, id="B"),
        pytest.param(traits(10, 100, 100), Use(50, 90, 2), Weights(memory=3), 26, id="A by memory"),
        pytest.param(traits(10, 100, 100), Use(60, 10, 8), Weights(memory=3), 27, id="B by memory"),
        pytest.param(traits(10, 100, 100), Use(50, 90, 2), Weights(core=3), 34, id="A by compute"),
        pytest.param(traits(10, 100, 100), Use(60, 10, 8), Weights(core=3), 17, id="B by compute"),
        pytest.param(traits(0, 100, 100), Use(60, 10, 8), Weights(), 7, id="no limit of slots"),
    ],
)
def test_gpu(gpu: Traits, use: Use, weights: Weights, expected: float) -> None:
    """HAMi's formula over the use of a GPU together with what is to come."""
    assert gpu_score(gpu, use, weights) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("gpus", "weights", "policy", "expected"),
    [
        pytest.param([], Weights(), Placement.BINPACK, 0, id="no GPU"),
        pytest.param([(traits(10, 100, 100), Use(100, 100, 10))], Weights(), Placement.BINPACK, 10, id="full"),
        pytest.param([(traits(10, 100, 100), Use(100, 100, 10))], Weights(), Placement.SPREAD, 0, id="full, spread"),
        pytest.param(
            [(traits(10, 100, 100), Use(300, 100, 10))], Weights(), Placement.BINPACK, 10, id="over-full is full"
        ),
        pytest.param([(traits(10, 100, 100), Use(50, 0, 5))] * 2, Weights(), Placement.BINPACK, 10 / 3, id="two alike"),
        pytest.param([(traits(10, 100, 100), Use(50, 0, 5))], Weights(0, 0, 1), Placement.BINPACK, 5, id="by memory"),
        pytest.param([(traits(0, 100, 100), Use(50, 0, 5))], Weights(), Placement.SPREAD, 7.5, id="no limit of slots"),
    ],
)
def test_node(gpus: list[tuple[Traits, Use]], weights: Weights, policy: Placement, expected: float) -> None:
    """0 to 10, whatever the weights are."""
    assert node_score(*sums_of(gpus), weights, policy) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        pytest.param({}, {}, id="none"),
        pytest.param({"a": 3.0, "b": 3.0}, {"a": 10, "b": 10}, id="all alike"),
        pytest.param({"a": 1.0, "b": 1.1, "c": 1.2}, {"a": 0, "b": 5, "c": 10}, id="close together"),
    ],
)
def test_priorities(scores: dict[str, float], expected: dict[str, int]) -> None:
    """Small differences survive the whole numbers of kube-scheduler."""
    assert build_priorities(scores) == expected
