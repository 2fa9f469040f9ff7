"""What a container with a part of a GPU is told, tier by tier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from gpushare.domain.fractions import Dialect, FractionMode, Grant, Isolation
from gpushare.sharing.limits import LibraryPaths, Part, build_limits, grants_of
from gpushare.sharing.responses import Mount
from support.bound_pods import UUIDS, grant, units

PATHS = LibraryPaths(library="/lib/v1/libvgpu.so", preload="/lib/v1/ld.so.preload", scratch="/c/1", locks="/locks")
OF_HAMI = {
    "CUDA_DEVICE_MEMORY_LIMIT_0": "3000m",
    "CUDA_DEVICE_SM_LIMIT_0": "30",
    "CUDA_DEVICE_SM_LIMIT": "30",
}
OF_ALIYUN = {
    "ALIYUN_COM_GPU_MEM_IDX": "0",
    "ALIYUN_COM_GPU_MEM_POD": "6",
    "ALIYUN_COM_GPU_MEM_CONTAINER": "4",
    "ALIYUN_COM_GPU_MEM_DEV": "15",
}
CACHE = {"CUDA_DEVICE_MEMORY_SHARED_CACHE": "/usr/local/vgpu/usage.cache"}


def part(given: Grant, index: int = 0, **fields: Any) -> Part:
    return Part(grant=given, gpu_index=index, memory_mib=15360, units=15 if given.units else 0, **fields)


def hami(**fields: Any) -> FractionMode:
    return FractionMode(dialect=Dialect.HAMI, **fields)


def aliyun(**fields: Any) -> FractionMode:
    return FractionMode(dialect=Dialect.ALIYUN, **fields)


@pytest.mark.parametrize(
    ("mode", "given", "expected"),
    [
        pytest.param(hami(), grant(), OF_HAMI, id="hami, counted only"),
        pytest.param(hami(memory_scaling=1.5), grant(), OF_HAMI | {"CUDA_OVERSUBSCRIBE": "true"}, id="over-committed"),
        pytest.param(hami(isolation=Isolation.EXCLUSIVE, slots=1), grant(), {}, id="exclusive"),
        pytest.param(
            hami(isolation=Isolation.MPS),
            grant(),
            OF_HAMI | {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=3000M", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "30"},
            id="hami by MPS",
        ),
        pytest.param(
            aliyun(isolation=Isolation.MPS),
            units(4),
            OF_ALIYUN | {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=4096M"},
            id="aliyun by MPS, without compute",
        ),
        pytest.param(aliyun(), units(4), OF_ALIYUN | {"CGPU_DISABLE": "true"}, id="aliyun, counted only"),
        pytest.param(
            aliyun(isolation=Isolation.HAMI_CORE),
            units(4),
            OF_ALIYUN
            | CACHE
            | {"CUDA_DEVICE_MEMORY_LIMIT_0": "4096m", "CUDA_DEVICE_SM_LIMIT_0": "0", "CUDA_DEVICE_SM_LIMIT": "0"},
            id="aliyun by HAMi's library",
        ),
        pytest.param(hami(isolation=Isolation.HAMI_CORE), grant(), OF_HAMI | CACHE, id="hami by HAMi's library"),
    ],
)
def test_environment(mode: FractionMode, given: Grant, expected: Mapping[str, str]) -> None:
    """Names and shapes are those that programs and libraries of each system read."""
    paths = PATHS if mode.isolation is Isolation.HAMI_CORE else None

    assert build_limits(mode, [part(given)], 6, paths).envs == expected


def test_several_gpus() -> None:
    """In the order in which CUDA counts them, which is not that of the ids; each with a limit of its own."""
    parts = [part(grant(2, 2000, 50), 2), part(grant(0, 1000, 20), 0)]

    envs = build_limits(hami(isolation=Isolation.MPS), parts, 0, None).envs

    assert envs["CUDA_DEVICE_MEMORY_LIMIT_0"] == "1000m"
    assert envs["CUDA_DEVICE_MEMORY_LIMIT_1"] == "2000m"
    assert (envs["CUDA_DEVICE_SM_LIMIT_0"], envs["CUDA_DEVICE_SM_LIMIT_1"]) == ("20", "50")
    assert envs["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == "0=1000M,1=2000M"
    assert envs["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "20"


def test_mounts() -> None:
    """The library where it expects to be, its file for the loader, and two directories."""
    answer = build_limits(hami(isolation=Isolation.HAMI_CORE), [part(grant())], 0, PATHS)

    assert answer.mounts == (
        Mount("/usr/local/vgpu", "/c/1"),
        Mount("/usr/local/vgpu/libvgpu.so", "/lib/v1/libvgpu.so", read_only=True),
        Mount("/tmp/vgpulock", "/locks"),
        Mount("/etc/ld.so.preload", "/lib/v1/ld.so.preload", read_only=True),
    )


@pytest.mark.parametrize("cores", [pytest.param(0, id="not limited"), pytest.param(100, id="all")])
def test_whole_gpu_is_not_intercepted(cores: int) -> None:
    """There is nothing to keep it from, and libraries between a program and its GPU cause trouble."""
    answer = build_limits(hami(isolation=Isolation.HAMI_CORE), [part(grant(0, 15360, cores))], 0, PATHS)

    assert answer.mounts == ()


@pytest.mark.parametrize(
    ("mode", "decided", "counts", "expected"),
    [
        pytest.param(hami(), [grant(0)], {UUIDS[0]: 1}, [grant(0)], id="as decided"),
        pytest.param(hami(), [grant(0)], {UUIDS[3]: 1}, [grant(3)], id="another GPU"),
        pytest.param(
            hami(),
            [grant(0, 1000), grant(1, 2000)],
            {UUIDS[1]: 1, UUIDS[2]: 1},
            [grant(1, 2000), grant(2, 1000)],
            id="one of two is another",
        ),
        pytest.param(aliyun(), [units(4, 0)], {UUIDS[1]: 3, UUIDS[0]: 1}, [units(3, 1), units(1, 0)], id="units"),
    ],
)
def test_grants(mode: FractionMode, decided: list[Grant], counts: dict[str, int], expected: list[Grant]) -> None:
    """The ids are the truth about where, and of units about how much too."""
    assert list(grants_of(mode, decided, counts)) == expected
