"""Whether a pod fits on a node, and onto which GPUs: the cases of HAMi's own tests, and those that it leaves out."""

from __future__ import annotations

from typing import Any

import pytest

from gpushare.domain.fractions import Dialect, FractionMode, Isolation, Placement
from gpushare.placement.fitting import fit
from gpushare.placement.gpus import Use
from gpushare.placement.quotas import Quota
from support.placements import ALIYUN, alike, device, gpus_of, hami, node_of, request_of, used

SPREAD = FractionMode(dialect=Dialect.HAMI, placement=Placement.SPREAD)
WIDE = FractionMode(dialect=Dialect.HAMI, slots=100)


SMALL = [device(0, 128), device(1, 128)]


@pytest.mark.parametrize(
    ("node", "request_", "expected"),
    [
        pytest.param(node_of(SMALL), request_of(hami(gpus=1, mem=64)), ["GPU-1"], id="two free: the last"),
        pytest.param(node_of(SMALL), request_of(hami(gpus=1, percent=50)), ["GPU-1"], id="half of one"),
        pytest.param(node_of(SMALL[:1]), request_of(hami(gpus=1, percent=10)), ["GPU-0"], id="a tenth"),
        pytest.param(node_of(SMALL[:1]), request_of(hami(gpus=1, mem=1, cores=120)), ["GPU-0"], id="compute clamped"),
        pytest.param(
            node_of(SMALL), request_of(hami(gpus=2, mem=64)), ["GPU-1", "GPU-0"], id="two GPUs, never one twice"
        ),
        pytest.param(
            node_of(SMALL, annotations={"hami.io/device-cordon": "GPU-9"}),
            request_of(hami(gpus=1, mem=1)),
            ["GPU-1"],
            id="another one cordoned",
        ),
        pytest.param(
            node_of(SMALL, annotations={"hami.io/device-cordon": " , GPU-1 ,"}),
            request_of(hami(gpus=1, mem=1)),
            ["GPU-0"],
            id="cordon with blanks",
        ),
        pytest.param(
            node_of(SMALL, annotations={"hami.io/device-cordon": ""}),
            request_of(hami(gpus=1, mem=1)),
            ["GPU-1"],
            id="empty cordon",
        ),
        pytest.param(
            node_of([device(0, numaNode=1), device(1, numaNode=1), device(2, numaNode=0)], SPREAD),
            request_of(hami(gpus=2, mem=1), annotations={"nvidia.com/numa-bind": "true"}),
            ["GPU-1", "GPU-0"],
            id="two on one NUMA node",
        ),
        pytest.param(
            node_of(
                [device(0, numaNode=1), device(1, numaNode=0), device(2, numaNode=0)],
                SPREAD,
                pods=used(gpu0=Use(15360)),
            ),
            request_of(hami(gpus=2, mem=1), annotations={"nvidia.com/numa-bind": "true"}),
            ["GPU-2", "GPU-1"],
            id="a full GPU elsewhere throws nothing away",
        ),
        pytest.param(
            node_of(SMALL, pods=used(gpu1=Use(1, 0, 1))),
            request_of(hami(gpus=1, mem=1), annotations={"hami.io/gpu-scheduler-policy": "mutex"}),
            ["GPU-0"],
            id="mutex: the idle one",
        ),
        pytest.param(
            node_of([device(0, product="NVIDIA A100"), device(1, product="Tesla T4")]),
            request_of(hami(gpus=1, mem=1), annotations={"nvidia.com/use-gputype": "V100,a100"}),
            ["GPU-0"],
            id="a model that is wanted",
        ),
        pytest.param(
            node_of([device(0, product="NVIDIA A100"), device(1, product="Tesla T4")]),
            request_of(hami(gpus=1, mem=1), annotations={"nvidia.com/use-gputype": "NVIDIA-Tesla"}),
            ["GPU-1"],
            id="the vendor stands before each model",
        ),
        pytest.param(
            node_of(SMALL),
            request_of(hami(gpus=1, mem=1), annotations={"nvidia.com/use-gpuuuid": "GPU-0"}),
            ["GPU-0"],
            id="a UUID",
        ),
        pytest.param(
            node_of([device(0, 128), device(1, 512)], pods=used(gpu1=Use(384, 0, 1))),
            request_of(hami(gpus=1, mem=100)),
            ["GPU-1"],
            id="each GPU by its own size",
        ),
    ],
)
def test_fits(node: Any, request_: Any, expected: list[str]) -> None:
    """The GPUs that a container gets, in this order."""
    assert gpus_of(fit(node, request_)) == [expected]


@pytest.mark.parametrize(
    ("node", "request_", "expected"),
    [
        pytest.param(node_of(SMALL[:1]), request_of(hami(gpus=1, mem=512)), "1/1 CardInsufficientMemory", id="memory"),
        pytest.param(
            node_of(SMALL[:1], pods=used(gpu0=Use(1, 100, 1))),
            request_of(hami(gpus=1, mem=1, cores=50)),
            "1/1 CardInsufficientCore",
            id="compute",
        ),
        pytest.param(
            node_of(SMALL[:1]),
            request_of(hami(gpus=1, mem=1), annotations={"nvidia.com/use-gputype": "A100"}),
            "1/1 CardTypeMismatch",
            id="model",
        ),
        pytest.param(
            node_of(SMALL[:1]),
            request_of(
                hami(gpus=1, mem=1), annotations={"nvidia.com/use-gputype": "T4", "nvidia.com/nouse-gputype": "tesla"}
            ),
            "1/1 CardTypeMismatch",
            id="a model that is to be avoided counts more",
        ),
        pytest.param(
            node_of(SMALL[:1]),
            request_of(hami(gpus=1, mem=1), annotations={"nvidia.com/vgpu-mode": "hami-core"}),
            "1/1 CardTypeMismatch",
            id="isolation",
        ),
        pytest.param(
            node_of(SMALL[:1]),
            request_of(hami(gpus=1, mem=1), annotations={"nvidia.com/use-gpuuuid": "GPU-9"}),
            "1/1 CardUuidMismatch",
            id="other UUID",
        ),
        pytest.param(
            node_of(SMALL[:1]),
            request_of(hami(gpus=1, mem=1), annotations={"nvidia.com/nouse-gpuuuid": "GPU-0"}),
            "1/1 CardUuidMismatch",
            id="not this UUID",
        ),
        pytest.param(
            node_of(SMALL[:1], pods=used(gpu0=Use(0, 0, 10))),
            request_of(hami(gpus=1, mem=1)),
            "1/1 CardTimeSlicingExhausted",
            id="slots",
        ),
        pytest.param(
            node_of(SMALL[:1], WIDE, pods=used(gpu0=Use(0, 0, 20))),
            request_of(hami(gpus=1, mem=1, cores=100)),
            "1/1 ExclusiveDeviceAllocateConflict",
            id="alone, but used",
        ),
        pytest.param(
            node_of(SMALL[:1], pods=used(gpu0=Use(0, 100, 1))),
            request_of(hami(gpus=1, mem=1)),
            "1/1 CardComputeUnitsExhausted",
            id="all compute reserved",
        ),
        pytest.param(
            node_of([device(0, health={"healthy": False})]),
            request_of(hami(gpus=1, mem=1)),
            "1/1 CardNotHealth",
            id="unhealthy",
        ),
        pytest.param(
            node_of(SMALL[:1], annotations={"hami.io/device-cordon": "GPU-0"}),
            request_of(hami(gpus=1, mem=1)),
            "1/1 CardCordoned",
            id="cordoned",
        ),
        pytest.param(
            node_of(SMALL, pods=used(gpu0=Use(0, 0, 1), gpu1=Use(0, 0, 1))),
            request_of(hami(gpus=1, mem=1), annotations={"hami.io/gpu-scheduler-policy": "mutex"}),
            "2/2 ExclusiveDeviceAllocateConflict",
            id="mutex: all busy",
        ),
        pytest.param(
            node_of([*SMALL, device(2, 1)]),
            request_of(hami(gpus=3, mem=64)),
            "1/3 CardInsufficientMemory, 2/3 AllocatedCardsInsufficientRequest",
            id="two of three fit",
        ),
        pytest.param(
            node_of(SMALL), request_of(hami(gpus=3, mem=1)), "2/3 NodeInsufficientDevice", id="more than the node has"
        ),
        pytest.param(
            node_of([device(0, numaNode=0), device(1, numaNode=1)]),
            request_of(hami(gpus=2, mem=1), annotations={"nvidia.com/numa-bind": "true"}),
            "2/2 NumaNotFit",
            id="NUMA nodes too small",
        ),
        pytest.param(
            node_of(
                [device(0, 64), device(1, 128, health={"healthy": False}), device(2), device(3, 32)],
                pods=used(gpu2=Use(0, 0, 10)),
            ),
            request_of(hami(gpus=1, mem=100)),
            "1/4 CardNotHealth, 1/4 CardTimeSlicingExhausted, 2/4 CardInsufficientMemory",
            id="each GPU for its first reason",
        ),
        pytest.param(node_of(SMALL, None), request_of(hami(gpus=1, mem=1)), "NodeServesNoFractions", id="no mode"),
        pytest.param(node_of(SMALL, ready="False"), request_of(hami(gpus=1, mem=1)), "AgentNotReady", id="agent"),
        pytest.param(node_of(SMALL, ALIYUN), request_of(hami(gpus=1, mem=1)), "DialectMismatch", id="dialect"),
        pytest.param(
            node_of(SMALL, FractionMode(dialect=Dialect.HAMI, compute=False)),
            request_of(hami(gpus=1, mem=1, cores=30)),
            "ComputeNotServed",
            id="no compute here",
        ),
        pytest.param(
            node_of([device(0, migEnabled=True), device(1, memoryMiB=0)]),
            request_of(hami(gpus=1, mem=1)),
            "0/1 NodeInsufficientDevice",
            id="MIG and silent GPUs take no part",
        ),
    ],
)
def test_does_not_fit(node: Any, request_: Any, expected: str) -> None:
    """Why not, by stable codes with numbers."""
    found = fit(node, request_)

    assert found.containers is None
    assert found.message == expected


def test_whole_gpu_where_compute_is_not_limited() -> None:
    """A GPU for oneself needs no limit of compute."""
    node = node_of(SMALL, FractionMode(dialect=Dialect.HAMI, compute=False))

    assert gpus_of(fit(node, request_of(hami(gpus=1, percent=100)))) == [["GPU-1"]]


def test_alone_under_scaled_compute() -> None:
    """Whoever wants a GPU alone has it alone, though there seems to be compute left (HAMi's own check is off there)."""
    node = node_of(SMALL[:1], FractionMode(dialect=Dialect.HAMI, core_scaling=2.0))
    alone = fit(node, request_of(hami(gpus=1, mem=1, cores=100)))
    taken = node.with_pod("alone", alone.holding)

    for other in (hami(gpus=1, mem=1), hami(gpus=1, mem=1, cores=30), hami(gpus=1, mem=1, cores=100)):
        assert fit(taken, request_of(other)).message == "1/1 ExclusiveDeviceAllocateConflict"
    used_by_all = node.with_pod("other", fit(node, request_of(hami(gpus=1, mem=1))).holding)
    assert fit(used_by_all, request_of(hami(gpus=1, mem=1, cores=100))).message == "1/1 ExclusiveDeviceAllocateConflict"


def test_over_commitment_only_by_scaling() -> None:
    """Memory beyond what there is is given out exactly where an administrator says so."""
    request = request_of(hami(gpus=1, mem=160))

    assert fit(node_of(SMALL[:1]), request).containers is None
    assert (
        fit(node_of(SMALL[:1], FractionMode(dialect=Dialect.HAMI, memory_scaling=1.5)), request).containers is not None
    )


def test_exclusive_tier() -> None:
    """Where GPUs are not shared, whoever fits has one alone, and nobody joins."""
    node = node_of(SMALL, FractionMode(dialect=Dialect.HAMI, isolation=Isolation.EXCLUSIVE))
    request = request_of(hami(gpus=1, mem=64, cores=10))

    found = fit(node, request)
    both = node.with_pod("a", found.holding)
    both = both.with_pod("b", fit(both, request).holding)
    assert fit(both, request).message == "2/2 CardTimeSlicingExhausted"
    assert fit(node, request_of(hami(gpus=1, mem=200))).message == "2/2 CardInsufficientMemory"


def test_vanished_gpu_still_counts_when_it_is_back() -> None:
    """What a pod holds of a GPU that is gone disturbs nobody, and is not forgotten."""
    pods = used(gpu1=Use(100, 0, 1))

    assert node_of(SMALL[:1], pods=pods).uses == (Use(),)
    assert node_of(SMALL, pods=pods).uses == (Use(), Use(100, 0, 1))


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        pytest.param(Quota(memory_mib=200), "", id="enough"),
        pytest.param(Quota(memory_mib=127), "2/2 ResourceQuotaNotFit", id="for one GPU only"),
        pytest.param(Quota(memory_mib=63), "2/2 ResourceQuotaNotFit", id="for none"),
        pytest.param(Quota(cores=59), "2/2 ResourceQuotaNotFit", id="compute"),
        pytest.param(Quota(memory_mib=-5, cores=60), "2/2 ResourceQuotaNotFit", id="used up already"),
    ],
)
def test_quota_counts_each_gpu(room: Quota, expected: str) -> None:
    """A container with two GPUs takes twice what is written, which Kubernetes itself would not see (HAMi#1393)."""
    found = fit(node_of(SMALL), request_of(hami(gpus=2, mem=64, cores=30)), room)

    assert found.message == expected


def test_quota_of_percentages() -> None:
    """Ten percent of a smaller GPU may be what the quota still has."""
    node = node_of([device(0, 1000), device(1, 2000)])

    assert gpus_of(fit(node, request_of(hami(gpus=1, percent=10)), Quota(memory_mib=100))) == [["GPU-0"]]


def test_score_is_taken_after_placement_and_over_the_gpus_in_question() -> None:
    """Of two nodes, binpack prefers the fuller and spread the emptier, whatever happens on GPUs of other models."""
    empty = node_of([device(0), device(1, product="A100")], pods=used(gpu1=Use(15000, 90, 9)))
    full = node_of([device(0), device(1, product="A100")], pods=used(gpu0=Use(7680, 50, 5)))

    def score(node: Any, policy: str) -> float:
        annotations = {"nvidia.com/use-gputype": "T4", "hami.io/node-scheduler-policy": policy}
        return fit(node, request_of(hami(gpus=1, mem=768, cores=10), annotations=annotations)).score

    assert score(empty, "binpack") == pytest.approx(10 * (0.1 + 0.1 + 0.05) / 3)
    assert score(full, "binpack") == pytest.approx(10 * (0.6 + 0.6 + 0.55) / 3)
    assert score(empty, "spread") == pytest.approx(10 - score(empty, "binpack"))


def test_nothing_of_the_node_is_changed() -> None:
    """A question leaves no trace, so that simulations of an autoscaler may ask."""
    node = alike(2)
    before = (node.uses, node.pods)
    fit(node, request_of(hami(gpus=1, mem=100)))

    assert (node.uses, node.pods) == before
