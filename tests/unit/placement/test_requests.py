"""What pods ask for, in both dialects, and what is refused with which words."""

from __future__ import annotations

from typing import Any

import pytest

from gpushare.domain.fractions import Dialect
from gpushare.placement.requests import read_request
from gpushare.placement.settings import RequestSettings
from gpushare.placement.shapes import ContainerRequest, Kind
from support.placements import SETTINGS, aliyun, container, hami, pod_of, request_of

ASKS = {"gpus": 1, "memory_mib": 0, "memory_percent": 0, "cores": 0}
CLAIMING = RequestSettings(claim_plain_gpu=True)


@pytest.mark.parametrize(
    ("body", "settings", "expected"),
    [
        pytest.param(
            hami(gpus=2), CLAIMING, {"gpus": 2, "memory_percent": 100, "cores": 100}, id="count only, claimed"
        ),
        pytest.param(hami(gpus=1, mem=3000), SETTINGS, {"memory_mib": 3000}, id="memory"),
        pytest.param(hami(gpus=1, mem="3k"), SETTINGS, {"memory_mib": 3000}, id="as the API server writes 3000"),
        pytest.param(hami(gpus=1, mem="3e3"), SETTINGS, {"memory_mib": 3000}, id="exponent"),
        pytest.param(hami(gpus=1, percent=50), SETTINGS, {"memory_percent": 50}, id="percent"),
        pytest.param(
            hami(gpus=1, percent=100), SETTINGS, {"memory_percent": 100, "cores": 100}, id="all percent is exclusive"
        ),
        pytest.param(
            hami(gpus=1, percent=0), SETTINGS, {"memory_percent": 100, "cores": 100}, id="0 percent is the whole card"
        ),
        pytest.param(hami(gpus=1, percent=0, mem=100), SETTINGS, {"memory_mib": 100}, id="0 percent and memory"),
        pytest.param(hami(gpus=1, percent=10, mem=100), SETTINGS, {"memory_mib": 100}, id="memory before percent"),
        pytest.param(
            hami(gpus=1, mem=0), SETTINGS, {"memory_percent": 100, "cores": 100}, id="memory 0 is the whole card"
        ),
        pytest.param(hami(gpus=1, cores=30), SETTINGS, {"memory_percent": 100, "cores": 30}, id="cores only"),
        pytest.param(hami(gpus=1, cores=0), SETTINGS, {"memory_percent": 100}, id="cores kept, though 0"),
        pytest.param(hami(gpus=1, mem=1, cores=120), SETTINGS, {"memory_mib": 1, "cores": 100}, id="cores clamped"),
        pytest.param(
            container(requests={"nvidia.com/gpu": "1", "nvidia.com/gpumem": "64"}),
            SETTINGS,
            {"memory_mib": 64},
            id="in requests only",
        ),
        pytest.param(
            hami(gpus=1, requests={"nvidia.com/gpumem-percentage": "50"}),
            SETTINGS,
            {"memory_percent": 50},
            id="percent in requests",
        ),
        pytest.param(hami(mem=64), SETTINGS, {"memory_mib": 64}, id="count by default, from memory"),
        pytest.param(hami(percent=64), SETTINGS, {"memory_percent": 64}, id="count by default, from percent"),
        pytest.param(hami(cores=64), SETTINGS, {"memory_percent": 100, "cores": 64}, id="count by default, from cores"),
        pytest.param(
            hami(mem=64), RequestSettings(default_count=2), {"gpus": 2, "memory_mib": 64}, id="another default"
        ),
        pytest.param(hami(gpus=1, mem=64), RequestSettings(memory_factor=10), {"memory_mib": 640}, id="memory factor"),
        pytest.param(
            hami(gpus=1, mem=64), RequestSettings(default_cores=20), {"memory_mib": 64, "cores": 20}, id="default cores"
        ),
        pytest.param(
            hami(gpus=1, cores=5),
            RequestSettings(default_memory=500),
            {"memory_mib": 500, "cores": 5},
            id="default memory",
        ),
        pytest.param(
            hami(gpus=1),
            RequestSettings(default_memory=500, claim_plain_gpu=True),
            {"memory_mib": 500},
            id="default memory is no whole card",
        ),
    ],
)
def test_hami(body: dict[str, Any], settings: RequestSettings, expected: dict[str, int]) -> None:
    """Limits, then requests, then defaults; whoever takes all memory and says nothing of compute takes the GPU alone."""
    read = read_request(pod_of(body), settings)

    assert read.problems == ()
    assert read.request is not None
    assert read.request.dialect is Dialect.HAMI
    assert read.request.containers == (ContainerRequest(name="main", **{**ASKS, **expected}),)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(hami(), id="nothing"),
        pytest.param(hami(gpus=1), id="a whole GPU of NVIDIA's plugin"),
        pytest.param(hami(gpus=0), id="no GPU"),
        pytest.param(container(requests={"cpu": "1"}), id="something else"),
    ],
)
def test_not_ours(body: dict[str, Any]) -> None:
    """Pods that ask for no fraction are left alone."""
    read = read_request(pod_of(body), SETTINGS)

    assert (read.request, read.problems, read.warnings) == (None, (), ())


def test_renamed_resources() -> None:
    """Every name can be another one, and an empty one cannot be asked for."""
    settings = RequestSettings(
        count="example.com/vgpu", memory="example.com/vmem", memory_percentage="", cores="example.com/vcore"
    )
    body = container(requests={"example.com/vgpu": "1", "example.com/vmem": "7", "example.com/vcore": "9", "": "5"})

    assert request_of(body, settings=settings).containers[0].tuple_of == (1, 7, 0, 0, 9)
    assert read_request(pod_of(hami(gpus=1, mem=5)), settings).request is None


@pytest.mark.parametrize(
    ("units", "cores", "count", "expected"),
    [
        pytest.param(4, None, None, (1, 0, 0, 4, 0), id="memory"),
        pytest.param(4, 30, None, (1, 0, 0, 4, 30), id="memory and compute"),
        pytest.param(8, None, "2", (2, 0, 0, 4, 0), id="over two GPUs"),
        pytest.param(4, 5, "1", (1, 0, 0, 4, 5), id="a label of 1 changes nothing"),
        pytest.param(4, 100, None, (1, 0, 0, 4, 100), id="all compute"),
    ],
)
def test_aliyun(units: int, cores: int | None, count: str | None, expected: tuple[int, ...]) -> None:
    """Units and percent; the label of the pod says over how many GPUs the memory goes."""
    labels = {"aliyun.com/gpu-count": count} if count else {}
    request = request_of(aliyun(units=units, cores=cores), labels=labels)

    assert request.dialect is Dialect.ALIYUN
    assert request.containers[0].tuple_of == expected


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        pytest.param(
            pod_of(hami(gpus=-1, mem=5)), "limits[nvidia.com/gpu]: -1 is negative; write 0 or more", id="negative"
        ),
        pytest.param(
            pod_of(hami(gpus=1, percent=-5)),
            "limits[nvidia.com/gpumem-percentage]: -5 is negative",
            id="negative percent",
        ),
        pytest.param(
            pod_of(hami(gpus="500m", mem=5)), "500m is not whole; write a whole number", id="fractional count"
        ),
        pytest.param(pod_of(hami(gpus=1, mem="0.5")), "0.5 is not whole", id="fractional memory"),
        pytest.param(pod_of(hami(gpus=1, mem=2**31)), "2147483648 is more than there can be", id="overflowing"),
        pytest.param(
            pod_of(hami(gpus=1, mem="3G")),
            "3G is more than there can be; write a plain number of MiB",
            id="decimal bytes",
        ),
        pytest.param(
            pod_of(hami(gpus=1, mem="9e999")), "9e999 is more than there can be", id="overflowing beyond measure"
        ),
        pytest.param(
            pod_of(hami(gpus=1, mem="8Gi")), '"8Gi" is an amount of bytes; write a plain number of MiB', id="bytes"
        ),
        pytest.param(pod_of(hami(gpus=1, mem="much")), '"much" is no number', id="no number"),
        pytest.param(pod_of(hami(gpus=1, mem="")), '"" is no number', id="nothing where a number should be"),
        pytest.param(pod_of(hami(gpus=1, percent=101)), "101 is more than all; write 1 to 100", id="percent over 100"),
        pytest.param(
            pod_of(hami(gpus=0, mem=5)),
            "but for no GPU; write how many, as in nvidia.com/gpu: 1",
            id="memory without a GPU",
        ),
        pytest.param(
            pod_of(hami("a", gpus=1, mem=5), aliyun("b", units=1)),
            "spec: asks for both aliyun.com/gpu-mem and nvidia.com/gpu",
            id="both dialects",
        ),
        pytest.param(
            pod_of(hami("a", gpus=1), aliyun("b", units=1)), "which no node serves together", id="units and a whole GPU"
        ),
        pytest.param(
            pod_of(container("a", requests={"nvidia.com/gpumem": "5"}), aliyun("b", units=1)),
            "spec: asks for both aliyun.com/gpu-mem and nvidia.com/gpumem, which",
            id="both dialects, without a number of GPUs",
        ),
        pytest.param(pod_of(aliyun(units="1.5")), "1.5 is not whole", id="aliyun fractional"),
        pytest.param(pod_of(aliyun(units="4Gi")), "write a plain number of units", id="aliyun bytes"),
        pytest.param(
            pod_of(aliyun(cores=30)), "needs memory too; write aliyun.com/gpu-mem as well", id="aliyun compute alone"
        ),
        pytest.param(
            pod_of(aliyun("a", units=1, cores=10), aliyun("b", units=1), container("c")),
            "spec.containers[1].resources.limits[aliyun.com/gpu-mem]: another container asks for aliyun.com/gpu-core.percentage",
            id="aliyun compute in one container and not in the other",
        ),
        pytest.param(
            pod_of(aliyun(units=1, cores=12)), "12 is no step of 5 up to 100", id="aliyun compute between steps"
        ),
        pytest.param(pod_of(aliyun(units=1, cores=105)), "105 is no step of 5 up to 100", id="aliyun compute over 100"),
        pytest.param(
            pod_of(aliyun(units=5), labels={"aliyun.com/gpu-count": "2"}),
            "5 units cannot be spread evenly over 2 GPUs; write a multiple of 2",
            id="aliyun uneven",
        ),
        pytest.param(
            pod_of(aliyun(units=4, cores=50), labels={"aliyun.com/gpu-count": "2"}),
            "cannot be limited on 2 GPUs; leave it out, or the label aliyun.com/gpu-count",
            id="aliyun compute on two GPUs",
        ),
        pytest.param(
            pod_of(container(requests={"aliyun.com/gpu-mem": "4", "aliyun.com/gpu-count": "2"})),
            "requests[aliyun.com/gpu-count]: only says how many GPUs a node has; leave it out and ask for aliyun.com/gpu-mem",
            id="aliyun number of GPUs as a resource",
        ),
        pytest.param(
            pod_of(container(requests={"aliyun.com/gpu-count": "2"})),
            "over how many GPUs, the label of that name of the pod says",
            id="a count alone",
        ),
        pytest.param(
            pod_of(aliyun(units=4), labels={"aliyun.com/gpu-count": "two"}),
            'metadata.labels[aliyun.com/gpu-count]: "two" is no number',
            id="aliyun label of words",
        ),
        pytest.param(
            pod_of(aliyun(units=4), labels={"aliyun.com/gpu-count": "0"}),
            "0 GPUs cannot hold memory",
            id="aliyun label of 0",
        ),
    ],
)
def test_refused(pod: dict[str, Any], message: str) -> None:
    """What can never run says where it is wrong, and what to write instead."""
    read = read_request(pod, SETTINGS)

    assert read.request is None
    assert [message in str(problem) for problem in read.problems] == [True]


def test_default_count_of_none() -> None:
    """Where an administrator wants the number of GPUs to be written, memory alone is refused."""
    read = read_request(pod_of(hami(mem=5)), RequestSettings(default_count=0))

    assert "write how many" in str(read.problems[0])


def test_memory_factor_overflows() -> None:
    """What is multiplied may be too much, though what was written is not."""
    read = read_request(pod_of(hami(gpus=1, mem=2**30)), RequestSettings(memory_factor=4))

    assert [str(problem) for problem in read.problems] == [
        "spec.containers[0].resources.limits[nvidia.com/gpumem]: 1073741824 times 4 MiB is more than there can be"
    ]


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        pytest.param(
            pod_of(hami(gpus=1, mem=5, percent=10)), "has no effect beside nvidia.com/gpumem", id="both amounts"
        ),
        pytest.param(pod_of(hami(gpus=1, mem=5, cores=150)), "150 is taken as 100, the whole GPU", id="clamped"),
        pytest.param(
            pod_of(container(), labels={"aliyun.com/gpu-count": "2"}),
            "metadata.labels[aliyun.com/gpu-count]: has no effect on a pod that asks for no aliyun.com/gpu-mem",
            id="label alone",
        ),
        pytest.param(
            pod_of(hami("a", gpus=1, mem=5), container("b", requests={"nvidia.com/priority": "1"})),
            "spec.containers[1].resources.requests[nvidia.com/priority]: has no effect on a container without a GPU",
            id="priority of nothing",
        ),
        pytest.param(
            pod_of(container("a", requests={"nvidia.com/gpu": "1", "nvidia.com/priority": "1"})),
            "spec.containers[0].resources.requests[nvidia.com/priority]: does nothing without a part of a GPU; "
            "write one of nvidia.com/gpumem, nvidia.com/gpumem-percentage, nvidia.com/gpucores too, or leave it out",
            id="priority of a pod that concerns nobody",
        ),
    ],
)
def test_warned(pod: dict[str, Any], message: str) -> None:
    """What is taken otherwise than one may think is said, and stops nobody."""
    read = read_request(pod, SETTINGS)

    assert read.problems == ()
    assert [message in str(warning) for warning in read.warnings] == [True]


def test_containers_in_the_order_of_the_kubelet() -> None:
    """Init containers come first, sidecars among them; containers without a GPU are left out (HAMi#1667)."""
    request = request_of(
        hami("app", gpus=1, mem=1),
        container("cpu"),
        init=[container("first"), hami("init", gpus=1, mem=2), hami("side", gpus=1, mem=3, sidecar=True)],
    )

    assert [(one.name, one.kind) for one in request.containers] == [
        ("init", Kind.INIT),
        ("side", Kind.SIDECAR),
        ("app", Kind.APP),
    ]


def test_containers_without_a_name() -> None:
    """Admission sees pods before the API server has checked them."""
    body = hami(gpus=1, mem=5)
    del body["name"]

    assert request_of(body).containers[0].name == ""


def test_shape() -> None:
    """Pods of one shape may be taken for each other: everything that a container gets is in it, names are not."""
    same = request_of(hami("a", gpus=1, mem=5)).shape
    assert request_of(hami("b", gpus=1, mem=5)).shape == same

    others = {
        request_of(hami("a", gpus=2, mem=5)).shape,
        request_of(hami("a", gpus=1, mem=6)).shape,
        request_of(hami("a", gpus=1, percent=5)).shape,
        request_of(hami("a", gpus=1, mem=5, cores=5)).shape,
        request_of(hami("a", gpus=1, mem=5), hami("b", gpus=1, mem=5)).shape,
        request_of(hami("a", gpus=1, mem=5), annotations={"nvidia.com/use-gputype": "T4"}).shape,
        request_of(hami("a", gpus=1, mem=5), annotations={"nvidia.com/nouse-gpuuuid": "GPU-1"}).shape,
        request_of(container("b"), init=[hami("a", gpus=1, mem=5)]).shape,
    }
    assert len(others | {same}) == 9


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        pytest.param([hami("a", gpus=1, mem=5)], True, id="one"),
        pytest.param([hami("a", gpus=1, mem=5), container("c"), hami("b", gpus=1, mem=5)], True, id="two alike"),
        pytest.param([hami("a", gpus=1, mem=5), hami("b", gpus=1, mem=6)], False, id="two that differ"),
    ],
)
def test_uniform(containers: list[dict[str, Any]], expected: bool) -> None:
    """Only pods whose containers all get the same may be on their way together."""
    assert request_of(*containers).is_uniform is expected
