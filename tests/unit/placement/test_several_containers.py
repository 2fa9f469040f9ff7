"""Pods with more than one container: beside each other, one after the other, and what the kubelet hands on between them."""

from __future__ import annotations

from typing import Any

import pytest

from gpushare.domain.fractions import Dialect, FractionMode
from gpushare.placement.fitting import fit
from gpushare.placement.gpus import Use
from support.placements import device, gpus_of, hami, node_of, request_of, used

SMALL = [device(0, 128), device(1, 128)]


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        pytest.param(
            [hami("a", gpus=1, mem=100), hami("b", gpus=1, mem=20)], [["GPU-1"], ["GPU-1"]], id="one GPU for both"
        ),
        pytest.param(
            [hami("a", gpus=1, mem=100), hami("b", gpus=1, mem=100)], [["GPU-1"], ["GPU-0"]], id="a GPU for each"
        ),
        pytest.param(
            [hami("a", gpus=1, mem=10), hami("b", gpus=2, mem=100)], [["GPU-1"], ["GPU-1", "GPU-0"]], id="two and one"
        ),
    ],
)
def test_several_containers(containers: list[dict[str, Any]], expected: list[list[str]]) -> None:
    """Each container is placed beside those before it."""
    assert gpus_of(fit(node_of(SMALL), request_of(*containers))) == expected


@pytest.mark.parametrize(
    ("containers", "scaling", "message"),
    [
        pytest.param(
            [hami("a", gpus=1, mem=10), hami("b", gpus=1, mem=10, cores=100)],
            1.0,
            "1/1 ExclusiveDeviceAllocateConflict",
            id="alone beside another one of the same pod",
        ),
        pytest.param(
            [hami("a", gpus=1, mem=10, cores=100), hami("b", gpus=1, mem=10, cores=30)],
            2.0,
            "1/1 ExclusiveDeviceAllocateConflict",
            id="beside one that is alone, with compute over-committed",
        ),
        pytest.param(
            [hami("a", gpus=1, mem=10, cores=60), hami("b", gpus=1, mem=10, cores=40), hami("c", gpus=1, mem=10)],
            1.0,
            "1/1 CardComputeUnitsExhausted",
            id="no compute left by the others",
        ),
    ],
)
def test_containers_in_each_others_way(containers: list[dict[str, Any]], scaling: float, message: str) -> None:
    """On one GPU, containers of a pod exclude each other as those of two pods would."""
    node = node_of(SMALL[:1], FractionMode(dialect=Dialect.HAMI, core_scaling=scaling))

    assert fit(node, request_of(*containers)).message == message


def test_the_last_slot_is_handed_on() -> None:
    """An app container gets the share of the init container before it, which needs no second one."""
    node = node_of(SMALL[:1], FractionMode(dialect=Dialect.HAMI, slots=1))
    app, init = hami("app", gpus=1, mem=50), hami("init", gpus=1, mem=50)

    assert gpus_of(fit(node, request_of(app, init=[init]))) == [["GPU-0"], ["GPU-0"]]
    assert fit(node, request_of(app, hami("b", gpus=1, mem=5))).message == "1/1 CardTimeSlicingExhausted"


def test_later_container_is_not_shut_out_by_an_earlier_one() -> None:
    """The first would take the GPU that only the second fits on; it takes the other one instead."""
    node = node_of([device(0, 64), device(1, 128)], pods=used(gpu1=Use(28, 0, 1)))
    found = fit(node, request_of(hami("small", gpus=1, mem=60), hami("large", gpus=1, mem=90)))

    assert gpus_of(found) == [["GPU-0"], ["GPU-1"]]


def test_init_container_alone_too_large() -> None:
    """A node is out if only the init container does not fit."""
    found = fit(node_of(SMALL), request_of(hami("app", gpus=1, mem=1), init=[hami("init", gpus=1, mem=200)]))

    assert found.message == "2/2 CardInsufficientMemory"


def test_init_container_larger_than_the_rest() -> None:
    """It counts with the most, not with the sum, and the app container gets its GPU again."""
    node = node_of(SMALL)
    found = fit(node, request_of(hami("app", gpus=1, mem=50), init=[hami("init", gpus=1, mem=128)]))

    assert gpus_of(found) == [["GPU-1"], ["GPU-1"]]
    assert found.holding == {"GPU-1": Use(memory_mib=128, cores=0, slots=1, alone=0, unlimited=1)}


def test_init_container_goes_where_the_app_container_fits() -> None:
    """The kubelet gives an init container's share to the app container, so that both must fit on the same GPU."""
    node = node_of([device(0, 128), device(1, 128)], pods=used(gpu1=Use(100, 0, 1)))
    found = fit(node, request_of(hami("app", gpus=1, mem=100), init=[hami("init", gpus=1, mem=10)]))

    assert gpus_of(found) == [["GPU-0"], ["GPU-0"]]


def test_every_gpu_of_an_init_container_has_to_do_for_the_next() -> None:
    """Which of its two shares the kubelet gives to the app container, nobody knows before."""
    node = node_of([device(0, 128), device(1, 128), device(2, 64)], pods=used(gpu0=Use(100, 0, 1)))
    found = fit(node, request_of(hami("app", gpus=1, mem=60), init=[hami("init", gpus=2, mem=10)]))

    assert sorted(gpus_of(found)[0]) == ["GPU-1", "GPU-2"]


def test_init_container_alone_before_others_share() -> None:
    """An init container that wants the GPU alone keeps other pods away, not the containers after it."""
    node = node_of(SMALL[:1])
    apps = [hami("a", gpus=1, mem=10, cores=30), hami("b", gpus=1, mem=10, cores=30)]
    found = fit(node, request_of(*apps, init=[hami("init", gpus=1, mem=10, cores=100)]))

    assert gpus_of(found) == [["GPU-0"]] * 3
    assert fit(node.with_pod("pod", found.holding), request_of(hami(gpus=1, mem=1, cores=1))).containers is None


def test_sidecar_stays() -> None:
    """A sidecar holds its share beside the app container."""
    node = node_of(SMALL[:1])
    side = hami("side", gpus=1, mem=64, sidecar=True)

    assert fit(node, request_of(hami("app", gpus=1, mem=64), init=[side])).holding["GPU-0"].slots == 2
    assert fit(node, request_of(hami("app", gpus=1, mem=65), init=[side])).message == "1/1 CardInsufficientMemory"
