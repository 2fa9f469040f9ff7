"""Pools of nodes that give out parts of GPUs."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from gpushare import names
from gpushare.api.sharing import Extension, Flags, SharingConfig
from gpushare.domain.devices import ComputeCapability, Inventory, MigStrategy
from gpushare.domain.fractions import Dialect, FractionMode, Isolation
from gpushare.domain.pools import Strategy
from gpushare.domain.shares import ShareId
from gpushare.kubelet import wire
from gpushare.sharing.building import Built, build_pools
from gpushare.sharing.capability import MAX_LIST_BYTES
from gpushare.sharing.mps import build_daemons
from support.inventories import XID_79, gpu, inventories, node, split_gpu, t4s

GPU, MEM, COUNT = names.RESOURCE_GPU, names.RESOURCE_ALIYUN_MEM, names.RESOURCE_ALIYUN_COUNT


def mode(dialect: Dialect = Dialect.HAMI, **fields: Any) -> FractionMode:
    return FractionMode(dialect=dialect, **fields)


def build(inventory: Inventory, wanted: FractionMode, mps_root: str | None = "/mps") -> Built:
    config = SharingConfig(extension=Extension(fractions=wanted), flags=Flags(mps_root=mps_root))
    return build_pools(inventory, config, MigStrategy.NONE)


def counts(built: Built) -> dict[str, int]:
    return {name: len(pool.shares) for name, pool in built.pools.items()}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(mode(), {GPU: 40, MEM: 0, COUNT: 0}, id="slots"),
        pytest.param(mode(slots=3), {GPU: 12, MEM: 0, COUNT: 0}, id="three slots"),
        pytest.param(mode(isolation=Isolation.EXCLUSIVE, slots=1), {GPU: 4, MEM: 0, COUNT: 0}, id="whole GPUs"),
        pytest.param(mode(isolation=Isolation.MIG), {GPU: 0, MEM: 0, COUNT: 0}, id="instances where there are none"),
        pytest.param(mode(Dialect.ALIYUN), {GPU: 0, MEM: 60, COUNT: 4}, id="GiB"),
        pytest.param(mode(Dialect.ALIYUN, unit_mib=256), {GPU: 0, MEM: 240, COUNT: 4}, id="256 MiB"),
        pytest.param(mode(Dialect.ALIYUN, memory_scaling=1.5), {GPU: 0, MEM: 88, COUNT: 4}, id="over-committed"),
    ],
)
def test_counts(wanted: FractionMode, expected: dict[str, int]) -> None:
    """Four T4 of 15 GiB; the words of the other dialect show 0."""
    assert counts(build(t4s(4), wanted)) == expected


def test_ids_name_their_gpu() -> None:
    """In the forms that HAMi's and Alibaba's tools know, and without a NUMA node."""
    slots = build(t4s(1), mode(slots=2)).pools[GPU]
    units = build(t4s(1), mode(Dialect.ALIYUN)).pools[MEM]

    assert list(slots.by_id) == [f"{gpu(0).uuid}::0", f"{gpu(0).uuid}::1"]
    assert list(units.by_id)[-1] == f"{gpu(0).uuid}-_-14"
    assert {share.numa_node for share in (*slots.shares, *units.shares)} == {None}


def test_each_gpu_counts_its_own_memory() -> None:
    """A node with two models: not the first one's size for both."""
    pool = build(node(gpu(0), gpu(1, memory_mib=81920)), mode(Dialect.ALIYUN)).pools[MEM]

    assert [sum(share.gpu_index == index for share in pool.shares) for index in (0, 1)] == [15, 80]


@pytest.mark.parametrize("dialect", Dialect)
def test_sick_gpu(dialect: Dialect) -> None:
    """All that is left of it is unhealthy, and nothing of the others."""
    pools = build(node(gpu(0, health=XID_79), gpu(1)), mode(dialect)).pools

    assert {(share.gpu_index, share.healthy) for pool in pools.values() for share in pool.shares} == {
        (0, False),
        (1, True),
    }


def test_split_gpus_take_no_part() -> None:
    """A GPU in MIG mode and one that does not tell its memory are left out, and named."""
    built = build(node(gpu(0), split_gpu(1, "1g.5gb"), gpu(2, memory_mib=0)), mode())

    assert {share.gpu_index for share in built.pools[GPU].shares} == {0}
    assert [str(warning).partition(",")[0] for warning in built.warnings] == [
        "gpushare.fractions: MIG is on at GPU 1",
        "gpushare.fractions: the driver does not tell the memory of GPU 2",
    ]


def test_instances_are_given_out_whole() -> None:
    """Tier mig: pods ask for the profile, and no scheduler of fractions is needed."""
    built = build(node(gpu(0), split_gpu(1, "1g.5gb", "2g.10gb")), mode(isolation=Isolation.MIG))

    assert counts(built) == {GPU: 0, MEM: 0, COUNT: 0, "nvidia.com/mig-1g.5gb": 1, "nvidia.com/mig-2g.10gb": 1}
    assert built.fractions is None
    assert ["MIG is off at GPU 0" in warning.message for warning in built.warnings] == [True]


def test_long_list_grows_the_unit() -> None:
    """The kubelet would drop it without a word: the unit in force is another, and a warning says so."""
    built = build(t4s(8), mode(Dialect.ALIYUN, unit_mib=1))

    assert built.fractions is not None
    assert built.fractions.unit_mib == 4
    assert built.pools[MEM].fractions == built.fractions
    assert wire.list_of_pool(built.pools[MEM]).ByteSize() <= MAX_LIST_BYTES
    assert "this node counts units of 4 MiB" in built.warnings[0].message


def test_too_many_slots() -> None:
    """Refused with the number that the kubelet takes; nothing is given out whole in the meantime."""
    built = build(t4s(8), mode(slots=100_000))

    assert [problem.path for problem in built.problems] == ["gpushare.slots"]
    assert counts(built) == {GPU: 0, MEM: 0, COUNT: 0}
    most = int(built.problems[0].message.rpartition("write ")[2].split()[0])
    assert build(t4s(8), mode(slots=most)).problems == ()


OLD = ComputeCapability(major=6, minor=0)
VOLTA = ComputeCapability(major=7, minor=0)


@pytest.mark.parametrize(
    ("inventory", "wanted", "root", "said"),
    [
        pytest.param(t4s(2), mode(isolation=Isolation.MPS), "/mps", "", id="served"),
        pytest.param(t4s(2), mode(isolation=Isolation.MPS), None, "needs a directory", id="no directory"),
        pytest.param(t4s(2), mode(isolation=Isolation.MPS, slots=60), "/mps", "takes 48 MPS clients", id="many"),
        pytest.param(
            node(gpu(0, compute_capability=VOLTA)),
            mode(isolation=Isolation.MPS, slots=17),
            "/mps",
            "takes 16 MPS clients",
            id="Volta",
        ),
        pytest.param(
            node(gpu(0, compute_capability=OLD)),
            mode(Dialect.ALIYUN, isolation=Isolation.MPS),
            "/mps",
            "too old for MPS",
            id="Pascal",
        ),
        pytest.param(node(gpu(0), split_gpu(1)), mode(isolation=Isolation.MPS), "/mps", "MIG is on at GPU 1", id="MIG"),
    ],
)
def test_mps(inventory: Inventory, wanted: FractionMode, root: str | None, said: str) -> None:
    """What MPS cannot do is refused before anything is touched."""
    problems = build(inventory, wanted, root).problems

    assert [said in problem.message for problem in problems] == ([True] if said else [])


def test_one_daemon_leaves_limits_to_clients() -> None:
    """Each container is told its own; the daemon's are only the most that one can have."""
    pools = build(t4s(2), mode(Dialect.ALIYUN, isolation=Isolation.MPS)).pools

    daemon = build_daemons(pools, t4s(2))[MEM]
    assert (daemon.thread_percentage, daemon.memory_limits, len(daemon.gpus)) == (100, (), 2)
    assert pools[MEM].strategy is Strategy.MPS


modes = st.builds(
    FractionMode,
    dialect=st.sampled_from(Dialect),
    slots=st.integers(1, 30),
    unit_mib=st.sampled_from((64, 256, 1024)),
    isolation=st.sampled_from((Isolation.NONE, Isolation.HAMI_CORE)),
    memory_scaling=st.floats(1, 3),
)


@settings(max_examples=40, deadline=None)
@given(inventories(), modes)
def test_every_id_names_one_gpu(inventory: Inventory, wanted: FractionMode) -> None:
    """And together they are what there is, neither more nor less."""
    built = build(inventory, wanted)

    whole = {gpu.uuid: gpu for gpu in inventory.gpus if not gpu.mig_enabled}
    for name in (GPU, MEM):
        pool = built.pools[name]
        assert len(pool.by_id) == len(pool.shares)
        assert all(whole[ShareId.parse(text).device].index == share.gpu_index for text, share in pool.by_id.items())
    if wanted.dialect is Dialect.HAMI:
        expected = {GPU: len(whole) * wanted.slots, MEM: 0, COUNT: 0}
    else:
        units = sum(int(gpu.memory_mib * wanted.memory_scaling) // wanted.unit_mib for gpu in whole.values())
        expected = {GPU: 0, MEM: units, COUNT: len(whole)}
    assert counts(built) == expected
