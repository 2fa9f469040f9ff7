"""What a container is given for its share ids."""

from __future__ import annotations

from typing import Any

import pytest

from gpushare.api.sharing import IdStrategy, ListStrategy, SharingConfig
from gpushare.domain.devices import MigStrategy
from gpushare.domain.pools import Allocation, Pool, Strategy
from gpushare.sharing.building import build_pools
from gpushare.sharing.responses import (
    ContainerAnswer,
    DeviceNode,
    Mount,
    RequestRefused,
    ResponseOptions,
    build_response,
)
from support.inventories import entry, gpu, sliced, t4s

A, B = gpu(0).uuid, gpu(1).uuid
ROOT = "/var/run/nvidia-container-devices"


def pool_of(config: SharingConfig) -> Pool:
    return build_pools(t4s(2), config, MigStrategy.NONE).pools["nvidia.com/gpu"]


WHOLE = pool_of(SharingConfig())
SHARED = pool_of(sliced(entry(2)))
STRICT = pool_of(sliced(entry(2), fail_requests_greater_than_one=True))
MPS = pool_of(sliced(entry(2), strategy=Strategy.MPS))


def options(*strategies: ListStrategy, **fields: Any) -> ResponseOptions:
    return ResponseOptions(list_strategies=frozenset(strategies), **fields)


@pytest.mark.parametrize(
    ("pool", "ids", "given", "expected"),
    [
        pytest.param(WHOLE, [A, B], ResponseOptions(), {"NVIDIA_VISIBLE_DEVICES": f"{A},{B}"}, id="whole GPUs"),
        pytest.param(
            SHARED, [f"{B}::1", f"{A}::0", f"{B}::0"], ResponseOptions(), {"NVIDIA_VISIBLE_DEVICES": f"{B},{A}"},
            id="each GPU once, in the order of the request",
        ),
        pytest.param(
            SHARED, [f"{B}::1"], ResponseOptions(id_strategy=IdStrategy.INDEX), {"NVIDIA_VISIBLE_DEVICES": "1"}, id="index"
        ),
        pytest.param(WHOLE, [], ResponseOptions(), {"NVIDIA_VISIBLE_DEVICES": ""}, id="nothing asked for"),
        pytest.param(
            WHOLE, [A], ResponseOptions(imex_channels=(0,)),
            {"NVIDIA_VISIBLE_DEVICES": A, "NVIDIA_IMEX_CHANNELS": "0"}, id="IMEX channel",
        ),
        pytest.param(
            WHOLE, [A], ResponseOptions(features=frozenset({"gds", "gdrcopy", "mofed"})),
            {
                "NVIDIA_VISIBLE_DEVICES": A, "NVIDIA_GDS": "enabled", "NVIDIA_GDRCOPY": "enabled", "NVIDIA_MOFED": "enabled"
            },
            id="features",
        ),
        pytest.param(
            WHOLE, [A], options(ListStrategy.ENVVAR, ListStrategy.VOLUME_MOUNTS), {"NVIDIA_VISIBLE_DEVICES": ROOT},
            id="mounts beat the variable",
        ),
        pytest.param(WHOLE, [A], options(ListStrategy.CDI_CRI), {}, id="CDI names nothing in the environment"),
        pytest.param(
            MPS, [f"{A}::0"], ResponseOptions(mps_root="/run/mps"),
            {"NVIDIA_VISIBLE_DEVICES": A, "CUDA_MPS_PIPE_DIRECTORY": "/mps/nvidia.com/gpu/pipe"}, id="MPS",
        ),
    ],
)  # fmt: skip
def test_environment(pool: Pool, ids: list[str], given: ResponseOptions, expected: dict[str, str]) -> None:
    """Variables, and no others."""
    assert build_response(pool, ids, given).envs == expected


def test_plain_answer() -> None:
    """Nothing but the variable by default."""
    assert build_response(WHOLE, [A], ResponseOptions()) == ContainerAnswer(envs={"NVIDIA_VISIBLE_DEVICES": A})


def test_volume_mounts() -> None:
    """A mount of nothing for each device, whose name is what counts."""
    answer = build_response(WHOLE, [A, B], options(ListStrategy.VOLUME_MOUNTS, imex_channels=(0,)))

    assert answer.mounts == tuple(Mount(f"{ROOT}/{name}", "/dev/null") for name in (A, B, "imex/0"))


def test_mps_mounts() -> None:
    """The daemon's pipe, and the shared memory that it uses."""
    answer = build_response(MPS, [f"{A}::0"], ResponseOptions(mps_root="/run/mps/"))

    assert answer.mounts == (
        Mount("/mps/nvidia.com/gpu/pipe", "/run/mps/nvidia.com/gpu/pipe"),
        Mount("/dev/shm", "/run/mps/shm"),
    )


def test_device_nodes() -> None:
    """Control devices, then each device's own nodes once, at the driver's root."""
    given = ResponseOptions(pass_device_specs=True, control_devices=("/dev/nvidiactl",), dev_root="/run/nvidia/driver")
    answer = build_response(SHARED, [f"{A}::0", f"{A}::1"], given)

    assert answer.devices == (
        DeviceNode("/dev/nvidiactl", "/run/nvidia/driver/dev/nvidiactl"),
        DeviceNode("/dev/nvidia0", "/run/nvidia/driver/dev/nvidia0"),
    )


def test_cdi_names() -> None:
    """GPUs, then channels, then what the node has besides."""
    given = options(ListStrategy.CDI_CRI, imex_channels=(0,), cdi_features=frozenset({"mofed", "gds"}))

    assert build_response(WHOLE, [A], given).cdi_devices == (
        f"k8s.device-plugin.nvidia.com/gpu={A}",
        "k8s.device-plugin.nvidia.com/imex-channel=0",
        "k8s.device-plugin.nvidia.com/gds=all",
        "k8s.device-plugin.nvidia.com/mofed=all",
    )


def test_cdi_annotations() -> None:
    """One annotation a request, its key no other request's on the same container."""
    given = options(ListStrategy.CDI_ANNOTATIONS, cdi_annotation_prefix="cdi.example.com/")
    first, again, other = (build_response(WHOLE, [name], given).annotations for name in (A, A, B))

    assert list(first.values()) == [f"k8s.device-plugin.nvidia.com/gpu={A}"]
    assert next(iter(first)).startswith("cdi.example.com/nvidia-device-plugin_")
    assert first == again
    assert first.keys().isdisjoint(other)


@pytest.mark.parametrize(
    ("pool", "ids", "text"),
    [
        pytest.param(
            SHARED, [f"{A}::0", f"{A}::9"], f'invalid allocation request for "nvidia.com/gpu": unknown device: {A}::9',
            id="unknown share",
        ),
        pytest.param(SHARED, [A], f'invalid allocation request for "nvidia.com/gpu": unknown device: {A}', id="whole GPU"),
        pytest.param(
            STRICT, [f"{A}::0", f"{B}::0"],
            'invalid allocation request for "nvidia.com/gpu": invalid request: '
            "maximum request size for shared resources is 1; found 2",
            id="two shares where one is the limit",
        ),
    ],
)  # fmt: skip
def test_refused(pool: Pool, ids: list[str], text: str) -> None:
    """In the words that people search for."""
    with pytest.raises(RequestRefused) as refusal:
        build_response(pool, ids, ResponseOptions())

    assert str(refusal.value) == text


def test_one_share_is_always_allowed() -> None:
    """The limit is on requests of several."""
    assert build_response(STRICT, [f"{A}::0"], ResponseOptions()).envs


def test_distinct_refuses_two_of_one() -> None:
    """A kubelet that does not follow the preference cannot slip two shares of one GPU in."""
    pool = Pool(
        resource="nvidia.com/gpu",
        base="nvidia.com/gpu",
        replicas=2,
        shares=SHARED.shares,
        allocation=Allocation.DISTINCT,
    )

    with pytest.raises(
        RequestRefused, match="2 shares must be of different devices, and fewer than 2 of 2 have a free"
    ):
        build_response(pool, [f"{A}::0", f"{A}::1"], ResponseOptions())
    with pytest.raises(RequestRefused, match="but this node has 2; ask for 2 at most"):
        build_response(pool, [f"{A}::0", f"{A}::1", f"{B}::0"], ResponseOptions())
    assert build_response(pool, [f"{A}::0", f"{B}::1"], ResponseOptions()).envs
