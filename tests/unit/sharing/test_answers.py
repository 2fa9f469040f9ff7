"""Combinations of ways in which a container is told what it has."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from gpushare.api.sharing import IdStrategy, ListStrategy, SharingConfig
from gpushare.domain.devices import MigStrategy
from gpushare.domain.pools import Pool
from gpushare.sharing.building import build_pools
from gpushare.sharing.responses import VISIBLE_DEVICES, ContainerAnswer, ResponseOptions, build_response
from support.inventories import entry, gpu, node, sliced, split_gpu, t4s

A, B = gpu(0).uuid, gpu(1).uuid
MOUNTS = "/var/run/nvidia-container-devices"
CDI = f"k8s.device-plugin.nvidia.com/gpu={A}"
SHARED = build_pools(t4s(2), sliced(entry(3)), MigStrategy.NONE).pools["nvidia.com/gpu"]
INSTANCES = build_pools(
    node(split_gpu(0, "1g.5gb", "1g.5gb"), split_gpu(1, "1g.5gb", "1g.5gb")), SharingConfig(), MigStrategy.SINGLE
).pools["nvidia.com/gpu"]


def summary(answer: ContainerAnswer) -> dict[str, Any]:
    """What an answer names, way by way; ways without anything are left out."""
    found = {
        "env": answer.envs.get(VISIBLE_DEVICES),
        "mounts": [mount.container_path for mount in answer.mounts],
        "nodes": [device.container_path for device in answer.devices],
        "annotations": list(answer.annotations.values()),
        "cdi": list(answer.cdi_devices),
    }
    return {way: named for way, named in found.items() if named}


@pytest.mark.parametrize(
    ("strategies", "expected"),
    [
        pytest.param("envvar", {"env": A, "nodes": ["/dev/nvidia0"]}, id="envvar"),
        pytest.param("volume-mounts", {"env": MOUNTS, "mounts": [f"{MOUNTS}/{A}"], "nodes": ["/dev/nvidia0"]}, id="mounts"),
        pytest.param("envvar volume-mounts", {"env": MOUNTS, "mounts": [f"{MOUNTS}/{A}"], "nodes": ["/dev/nvidia0"]},
                     id="envvar and mounts"),
        pytest.param("cdi-annotations", {"annotations": [CDI]}, id="annotations"),
        pytest.param("cdi-cri", {"cdi": [CDI]}, id="field"),
        pytest.param("cdi-annotations cdi-cri", {"annotations": [CDI], "cdi": [CDI]}, id="annotations and field"),
        pytest.param("cdi-cri envvar", {"env": A, "nodes": ["/dev/nvidia0"], "cdi": [CDI]}, id="field and envvar"),
        pytest.param(
            "cdi-annotations cdi-cri envvar volume-mounts",
            {"env": MOUNTS, "mounts": [f"{MOUNTS}/{A}"], "nodes": ["/dev/nvidia0"], "annotations": [CDI], "cdi": [CDI]},
            id="all",
        ),
    ],
)  # fmt: skip
def test_combinations(strategies: str, expected: dict[str, Any]) -> None:
    """Each way as if it were alone, except that CDI alone needs no device nodes."""
    options = ResponseOptions(list_strategies=frozenset(map(ListStrategy, strategies.split())), pass_device_specs=True)

    assert summary(build_response(SHARED, [f"{A}::2", f"{A}::0"], options)) == expected


@st.composite
def questions(draw: st.DrawFn) -> tuple[Pool, tuple[str, ...]]:
    pool = draw(st.sampled_from((SHARED, INSTANCES)))
    return pool, tuple(draw(st.lists(st.sampled_from(sorted(pool.by_id)), max_size=6, unique=True)))


options_of_any_kind = st.builds(
    ResponseOptions,
    list_strategies=st.frozensets(st.sampled_from(ListStrategy), min_size=1),
    id_strategy=st.sampled_from(IdStrategy),
    pass_device_specs=st.booleans(),
    control_devices=st.just(("/dev/nvidiactl",)),
    imex_channels=st.sampled_from(((), (0,))),
    features=st.just(frozenset({"gds", "mofed", "gdrcopy"})),
    cdi_features=st.frozensets(st.sampled_from(("gds", "mofed", "gdrcopy"))),
)


@given(questions(), options_of_any_kind)
def test_nothing_twice(question: tuple[Pool, tuple[str, ...]], options: ResponseOptions) -> None:
    """However shares and ways are combined; and the same question has the same answer, in the same order."""
    pool, ids = question
    answer = build_response(pool, ids, options)

    assert answer == build_response(pool, list(ids), options)
    for named in (
        answer.cdi_devices,
        [mount.container_path for mount in answer.mounts],
        [device.container_path for device in answer.devices],
        *(value.split(",") for value in answer.annotations.values()),
        *([answer.envs[VISIBLE_DEVICES].split(",")] if VISIBLE_DEVICES in answer.envs else ()),
    ):
        assert len(named) == len(set(named))


@given(questions(), options_of_any_kind)
def test_every_way_names_the_same(question: tuple[Pool, tuple[str, ...]], options: ResponseOptions) -> None:
    """The devices behind the shares, each once, in the order of the request."""
    pool, ids = question
    answer = build_response(pool, ids, options)
    shares = [pool.by_id[share_id] for share_id in ids]
    by_index = options.id_strategy is IdStrategy.INDEX
    names = list(dict.fromkeys(share.device_index if by_index else share.id.device for share in shares))

    gpus = [name.rpartition("/gpu=")[2] for name in answer.cdi_devices if "/gpu=" in name]
    assert gpus == (names if ListStrategy.CDI_CRI in options.list_strategies else [])
    if ListStrategy.VOLUME_MOUNTS in options.list_strategies:
        mounted = [mount.container_path.removeprefix(f"{MOUNTS}/") for mount in answer.mounts]
        assert [name for name in mounted if not name.startswith("imex/")] == names
    elif ListStrategy.ENVVAR in options.list_strategies:
        assert answer.envs[VISIBLE_DEVICES] == ",".join(names)
