"""Annotations by which pods say where they may run, and what is wrong with them."""

from __future__ import annotations

import pytest

from gpushare.domain.fractions import Placement
from gpushare.placement.requests import read_request
from gpushare.placement.settings import RequestSettings
from gpushare.placement.shapes import Constraints, Policy, Weights
from support.placements import SETTINGS, aliyun, hami, pod_of, request_of

BODY = hami(gpus=1, mem=5)


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param({}, Constraints(), id="none"),
        pytest.param({"nvidia.com/use-gputype": "T4, A100"}, Constraints(use_models=("a100", "t4")), id="models"),
        pytest.param({"nvidia.com/nouse-gputype": "v100,"}, Constraints(avoid_models=("v100",)), id="models to avoid"),
        pytest.param(
            {"nvidia.com/use-gpuuuid": " GPU-1 ,GPU-2"}, Constraints(use_uuids=("GPU-1", "GPU-2")), id="UUIDs"
        ),
        pytest.param({"nvidia.com/use-gpuuuid": " , "}, Constraints(), id="blanks name nothing"),
        pytest.param({"nvidia.com/nouse-gpuuuid": "GPU-1"}, Constraints(avoid_uuids=("GPU-1",)), id="UUIDs to avoid"),
        pytest.param({"nvidia.com/numa-bind": "True"}, Constraints(numa_bind=True), id="bound"),
        pytest.param({"nvidia.com/numa-bind": "false"}, Constraints(), id="not bound"),
        pytest.param({"nvidia.com/vgpu-mode": "hami-core"}, Constraints(tier="hami-core"), id="isolation"),
    ],
)
def test_constraints(annotations: dict[str, str], expected: Constraints) -> None:
    """The same words as HAMi's, in both dialects."""
    assert request_of(BODY, annotations=annotations).constraints == expected
    assert request_of(aliyun(units=1), annotations=annotations).constraints == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", (), id="none"),
        pytest.param("binpack", (Policy.BINPACK,), id="one"),
        pytest.param("mutex, topology-aware", (Policy.MUTEX, Policy.TOPOLOGY), id="chain"),
        pytest.param("numa,spread,numa", (Policy.NUMA, Policy.SPREAD), id="each once"),
    ],
)
def test_gpu_policy(text: str, expected: tuple[Policy, ...]) -> None:
    """One word or a chain of them."""
    assert request_of(BODY, annotations={"hami.io/gpu-scheduler-policy": text}).gpu_policy == expected


def test_node_policy() -> None:
    """The pod's word before the administrator's."""
    settings = RequestSettings(node_policy=Placement.SPREAD)

    assert request_of(BODY, settings=settings).node_policy is Placement.SPREAD
    assert (
        request_of(BODY, settings=settings, annotations={"hami.io/node-scheduler-policy": "binpack"}).node_policy
        is Placement.BINPACK
    )


def test_weights() -> None:
    """All three, in any order."""
    found = request_of(BODY, annotations={"hami.io/device-scoring-weights": "memory=3, slot=0,core=1"})

    assert found.weights == Weights(slot=0, core=1, memory=3)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        pytest.param("nvidia.com/numa-bind", "maybe", '"maybe" is neither true nor false', id="flag"),
        pytest.param(
            "nvidia.com/vgpu-mode", "vmware", '"vmware" names no isolation; write one of none, mps', id="isolation"
        ),
        pytest.param(
            "hami.io/node-scheduler-policy", "mutex", '"mutex" is no policy; write binpack or spread', id="node policy"
        ),
        pytest.param(
            "hami.io/gpu-scheduler-policy", "binpack,best", '"best" is no policy; write one or more of', id="GPU policy"
        ),
        pytest.param(
            "hami.io/device-scoring-weights", "slot=1,core=1", "write slot=A,core=B,memory=C", id="two weights"
        ),
        pytest.param("hami.io/device-scoring-weights", "slot=1,core=1,slot=1", "write slot=A", id="a weight twice"),
        pytest.param("hami.io/device-scoring-weights", "slot=1,core=-1,memory=1", "write slot=A", id="negative weight"),
        pytest.param(
            "hami.io/device-scoring-weights", "slot=0,core=0,memory=0", "one of them above 0", id="no weight at all"
        ),
    ],
)
def test_malformed(name: str, text: str, message: str) -> None:
    """An annotation that cannot be followed refuses the pod, rather than be ignored in silence."""
    read = read_request(pod_of(BODY, annotations={name: text}), SETTINGS)

    assert read.request is None
    assert [problem.path for problem in read.problems] == [f"metadata.annotations[{name}]"]
    assert message in read.problems[0].message
