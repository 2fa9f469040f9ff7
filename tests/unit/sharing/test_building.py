"""Pools of a node: what each configuration makes of each kind of hardware."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from gpushare.api.sharing import DeviceSelection, Flags, SharedResource, SharingConfig
from gpushare.domain.devices import ComputeCapability, Health, Inventory, MigStrategy
from gpushare.domain.pools import Allocation, Strategy
from gpushare.sharing.building import Built, build_pools
from gpushare.sharing.capability import MAX_LIST_BYTES
from support.inventories import configs, entry, gpu, inventories, node, sliced, split_gpu, t4s


def counts(built: Built) -> dict[str, int]:
    return {name: len(pool.shares) for name, pool in built.pools.items()}


def build(inventory: Inventory, config: SharingConfig, strategy: MigStrategy = MigStrategy.NONE) -> Built:
    return build_pools(inventory, config, strategy)


def test_unshared() -> None:
    """Each GPU is one device, under its UUID."""
    built = build(t4s(2), SharingConfig())

    pool = built.pools["nvidia.com/gpu"]
    assert [str(share.id) for share in pool.shares] == [gpu(0).uuid, gpu(1).uuid]
    assert (pool.strategy, pool.replicas, pool.renamed) == (Strategy.NONE, 1, False)
    assert [share.paths for share in pool.shares] == [("/dev/nvidia0",), ("/dev/nvidia1",)]


def test_time_slicing() -> None:
    """Each GPU is offered so many times, in order of GPU and share."""
    built = build(t4s(2), sliced(entry(2)))

    pool = built.pools["nvidia.com/gpu"]
    assert list(pool.by_id) == [f"{gpu(index).uuid}::{number}" for index in (0, 1) for number in (0, 1)]
    assert (pool.strategy, pool.replicas) == (Strategy.TIME_SLICING, 2)
    assert {share.numa_node for share in pool.shares} == {0}


def test_renamed_base_stays_with_nothing() -> None:
    """A node shows 0 of the old name, not its absence."""
    built = build(t4s(2), sliced(entry(4, offered_as="nvidia.com/gpu.shared")))

    assert counts(built) == {"nvidia.com/gpu": 0, "nvidia.com/gpu.shared": 8}
    assert built.pools["nvidia.com/gpu.shared"].base == "nvidia.com/gpu"


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        pytest.param(DeviceSelection(count=1), ["0::0", "0::1", "1", "2"], id="count"),
        pytest.param(DeviceSelection(refs=("2",)), ["0", "1", "2::0", "2::1"], id="index"),
        pytest.param(DeviceSelection(refs=(gpu(1).uuid,)), ["0", "1::0", "1::1", "2"], id="UUID"),
        pytest.param(DeviceSelection(refs=("0", gpu(0).uuid)), ["0::0", "0::1", "1", "2"], id="one device named twice"),
    ],
)
def test_selected_devices(selection: DeviceSelection, expected: list[str]) -> None:
    """Devices that are not listed stay whole."""
    built = build(t4s(3), sliced(entry(2, devices=selection)))

    found = [
        str(share.id).replace(gpu(share.gpu_index).uuid, str(share.gpu_index))
        for share in built.pools["nvidia.com/gpu"].shares
    ]
    assert found == expected


@pytest.mark.parametrize("ref", ["1:1", f"MIG-{gpu(1).uuid}/8/0", split_gpu(1, "1g.5gb", "1g.5gb").mig[1].uuid])
def test_selected_instance(ref: str) -> None:
    """By index, by its name before driver 470, by UUID."""
    inventory = node(split_gpu(0, "1g.5gb"), split_gpu(1, "1g.5gb", "1g.5gb"))
    shared = entry(2, "nvidia.com/mig-1g.5gb", devices=DeviceSelection(refs=(ref,)))
    pool = build(inventory, sliced(shared), MigStrategy.MIXED).pools["nvidia.com/mig-1g.5gb"]

    uuid = inventory.gpus[1].mig[1].uuid
    assert [share.id.device for share in pool.shares if share.id.number is not None] == [uuid, uuid]
    assert len(pool.shares) == 4


def test_selected_and_renamed() -> None:
    """Shares go under the new name, the rest stays under the old one."""
    shared = entry(3, offered_as="nvidia.com/slice", devices=DeviceSelection(refs=("1",)))

    assert counts(build(t4s(3), sliced(shared))) == {"nvidia.com/gpu": 2, "nvidia.com/slice": 3}


def test_one_replica_leaves_devices_whole() -> None:
    """Replicas 1 means not shared, beside an entry that is."""
    inventory = node(gpu(0), split_gpu(1, "1g.5gb"))
    built = build(inventory, sliced(entry(1), entry(3, "nvidia.com/mig-1g.5gb")), MigStrategy.MIXED)

    assert counts(built) == {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.5gb": 3}
    assert built.pools["nvidia.com/gpu"].strategy is Strategy.NONE


@pytest.mark.parametrize(
    ("strategy", "inventory", "expected"),
    [
        pytest.param(MigStrategy.NONE, node(split_gpu(0, "1g.5gb"), gpu(1)), {"nvidia.com/gpu": 2}, id="none"),
        pytest.param(MigStrategy.SINGLE, t4s(2), {"nvidia.com/gpu": 2}, id="single without MIG"),
        pytest.param(
            MigStrategy.SINGLE,
            node(split_gpu(0, "1g.5gb", "1g.5gb"), split_gpu(1, "1g.5gb")),
            {"nvidia.com/gpu": 3},
            id="single",
        ),
        pytest.param(
            MigStrategy.MIXED,
            node(split_gpu(0, "1g.5gb", "2g.10gb", "1g.5gb+me"), gpu(1)),
            {
                "nvidia.com/gpu": 1,
                "nvidia.com/mig-1g.5gb": 1,
                "nvidia.com/mig-1g.5gb.me": 1,
                "nvidia.com/mig-2g.10gb": 1,
            },
            id="mixed",
        ),
        pytest.param(MigStrategy.MIXED, node(), {"nvidia.com/gpu": 0}, id="no GPUs"),
    ],
)
def test_mig_strategies(strategy: MigStrategy, inventory: Inventory, expected: dict[str, int]) -> None:
    """Which device counts as what."""
    built = build(inventory, SharingConfig(), strategy)

    assert counts(built) == expected
    assert built.unserved == ()


def test_mixed_with_nothing_made() -> None:
    """A GPU that somebody has yet to divide is no error; why the node offers so little is said."""
    built = build(node(split_gpu(0), gpu(1)), SharingConfig(), MigStrategy.MIXED)

    assert (counts(built), built.problems) == ({"nvidia.com/gpu": 1}, ())
    assert [str(each) for each in built.unserved] == [
        "migStrategy: GPU 0 is in MIG mode and has no instances, so nothing of it is offered"
    ]


@pytest.mark.parametrize(
    ("inventory", "words"),
    [
        pytest.param(
            node(split_gpu(0, "1g.5gb"), gpu(1), gpu(2)), "GPUs 1, 2 are not in MIG mode", id="not all are split"
        ),
        pytest.param(node(split_gpu(0, "1g.5gb"), split_gpu(1)), "GPU 1 is without any", id="one is empty"),
        pytest.param(node(split_gpu(0, "1g.5gb", "2g.10gb")), "several (1g.5gb, 2g.10gb)", id="two kinds"),
    ],
)
def test_nodes_that_cannot_have_single(inventory: Inventory, words: str) -> None:
    """A problem, not a note: whoever served something before keeps it instead of taking every GPU of the node away."""
    built = build(inventory, SharingConfig(), MigStrategy.SINGLE)

    assert counts(built) == {"nvidia.com/gpu": 0}
    assert [problem.path for problem in built.problems] == ["migStrategy"]
    assert words in built.problems[0].message


def test_a_device_that_fits_no_resource() -> None:
    """What fits is served, what does not is named; the configuration is not to blame."""
    built = build(node(split_gpu(0, "1g.5gb", "1c.3g.20gb")), SharingConfig(), MigStrategy.MIXED)

    assert counts(built) == {"nvidia.com/gpu": 0, "nvidia.com/mig-1g.5gb": 1}
    assert built.problems == ()
    assert "MIG instance 0:1 (1c.3g.20gb)" in built.unserved[0].message


OLD = ComputeCapability(major=6, minor=0)
VOLTA = ComputeCapability(major=7, minor=0)


@pytest.mark.parametrize(
    ("inventory", "config", "strategy", "path", "words"),
    [
        pytest.param(
            t4s(4), sliced(entry(2, devices=DeviceSelection(count=5))), MigStrategy.NONE,
            "sharing.timeSlicing.resources[0].devices", "asks for 5 devices, but this node has 4", id="too many devices",
        ),
        pytest.param(
            t4s(2), sliced(entry(2, devices=DeviceSelection(refs=("0", "7")))), MigStrategy.NONE,
            "sharing.timeSlicing.resources[0].devices[1]", "with index 7; it has 0, 1", id="unknown index",
        ),
        pytest.param(
            t4s(4), sliced(entry(10**9)), MigStrategy.NONE,
            "sharing.timeSlicing.resources[0].replicas", "the kubelet takes 4,194,304: write", id="too long a list",
        ),
        pytest.param(
            node(gpu(0), split_gpu(1, "1g.5gb")), sliced(entry(2, offered_as="nvidia.com/mig-1g.5gb")), MigStrategy.MIXED,
            "sharing.timeSlicing.resources[0].rename", "is a resource of its own", id="rename to another resource",
        ),
        pytest.param(
            t4s(2), sliced(entry(49), strategy=Strategy.MPS), MigStrategy.NONE,
            "sharing.timeSlicing.resources[0].replicas", "takes 48 MPS clients at most", id="MPS clients",
        ),
        pytest.param(
            node(gpu(0, compute_capability=VOLTA)), sliced(entry(17), strategy=Strategy.MPS), MigStrategy.NONE,
            "sharing.timeSlicing.resources[0].replicas", "takes 16 MPS clients at most", id="MPS clients of Volta",
        ),
        pytest.param(
            node(gpu(0, compute_capability=OLD)), sliced(entry(2), strategy=Strategy.MPS), MigStrategy.NONE,
            "sharing.timeSlicing.resources[0].replicas", "too old for MPS", id="MPS before Volta",
        ),
        pytest.param(
            t4s(1), sliced(entry(2), strategy=Strategy.MPS), MigStrategy.MIXED,
            "sharing.mps", "does not go with the MIG strategy mixed", id="MPS with mixed",
        ),
        pytest.param(
            node(split_gpu(0, "1g.5gb")), sliced(entry(2), strategy=Strategy.MPS), MigStrategy.SINGLE,
            "sharing.mps", "MIG is on at GPU 0", id="MPS on MIG devices",
        ),
        pytest.param(
            t4s(1), sliced(entry(2), strategy=Strategy.MPS, flags=Flags()), MigStrategy.NONE,
            "flags.mpsRoot", "write /run/nvidia/mps", id="MPS without its root",
        ),
    ],
)  # fmt: skip
def test_refused(inventory: Inventory, config: SharingConfig, strategy: MigStrategy, path: str, words: str) -> None:
    """What this node cannot do is told, and its devices are offered unshared."""
    built = build(inventory, config, strategy)

    assert [problem.path for problem in built.problems] == [path]
    assert words in built.problems[0].message
    assert all(pool.strategy is Strategy.NONE for pool in built.pools.values())
    assert built.pools == build(inventory, SharingConfig(flags=config.flags), strategy).pools


@pytest.mark.parametrize(
    ("shared", "path"),
    [
        pytest.param(entry(7, "nvidia.com/mig-7g.40gb"), "sharing.timeSlicing.resources[0].name", id="resource"),
        pytest.param(
            entry(2, devices=DeviceSelection(refs=("0", "GPU-x"))),
            "sharing.timeSlicing.resources[0].devices[1]",
            id="UUID of another node",
        ),
    ],
)
def test_what_the_node_lacks_is_a_warning(shared: SharedResource, path: str) -> None:
    """One text serves several kinds of node."""
    built = build(t4s(2), sliced(shared, entry(2, "nvidia.com/none")))

    assert built.problems == ()
    assert path in [warning.path for warning in built.warnings]


def test_mps() -> None:
    """Pools of MPS, within what the GPUs take."""
    built = build(t4s(2), sliced(entry(48), strategy=Strategy.MPS))

    assert built.problems == ()
    assert built.pools["nvidia.com/gpu"].strategy is Strategy.MPS


def test_policies_reach_the_pools() -> None:
    """Whom a request of several is refused, and which shares are preferred."""
    config = sliced(
        entry(2),
        fail_requests_greater_than_one=True,
        extension=replace(SharingConfig().extension, allocation=Allocation.PACKED),
    )
    pool = build(t4s(1), config).pools["nvidia.com/gpu"]

    assert pool.fail_requests_greater_than_one
    assert pool.allocation is Allocation.PACKED


def test_health_reaches_every_share() -> None:
    """All shares of a sick GPU are sick, and only they."""
    inventory = node(gpu(0, health=Health(healthy=False, reason="XID 79")), gpu(1))
    pool = build(inventory, sliced(entry(2))).pools["nvidia.com/gpu"]

    assert [share.healthy for share in pool.shares] == [False, False, True, True]
    assert pool.healthy == 2


@settings(max_examples=150, deadline=None)
@given(inventories(), configs(), st.sampled_from(MigStrategy))
def test_every_share_is_one_device(inventory: Inventory, config: SharingConfig, strategy: MigStrategy) -> None:
    """No id twice on a node, each of one device, no device both whole and shared, none under two names."""
    built = build_pools(inventory, config, strategy)

    shares = [(share, pool) for pool in built.pools.values() for share in pool.shares]
    assert len({str(share.id) for share, _ in shares}) == len(shares)
    devices = {gpu.uuid: gpu.index for gpu in inventory.gpus} | {
        mig.uuid: gpu.index for gpu in inventory.gpus for mig in gpu.mig
    }
    assert all(devices[share.id.device] == share.gpu_index for share, _ in shares)
    per_device = Counter(share.id.device for share, _ in shares)
    for share, pool in shares:
        assert per_device[share.id.device] == (1 if share.id.number is None else pool.replicas)
    assert "nvidia.com/gpu" in built.pools
    assert all(name == pool.resource for name, pool in built.pools.items())


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 8), st.integers(2, 60_000))
def test_the_limit_of_the_list_is_the_kubelets(count: int, replicas: int) -> None:
    """What is let through is below the limit, with all that the protocol puts around an id."""
    built = build(t4s(count), sliced(entry(replicas)))
    size = sum(len(share_id) + 2 + 2 + 9 + 6 for share_id in built.pools["nvidia.com/gpu"].by_id)

    assert size <= MAX_LIST_BYTES
    assert bool(built.problems) == (built.pools["nvidia.com/gpu"].replicas == 1)


@pytest.mark.parametrize(
    ("replicas", "strategy", "said"),
    [
        pytest.param(19, Strategy.MPS, [], id="enough"),
        pytest.param(20, Strategy.MPS, ["each client gets 768 MiB of Tesla T4"], id="too little"),
        pytest.param(20, Strategy.TIME_SLICING, [], id="memory that nobody divides"),
    ],
)
def test_small_clients(replicas: int, strategy: Strategy, said: list[str]) -> None:
    """Served, since programs differ; but whoever divides memory too finely is told before programs fail, once a model."""
    built = build(t4s(2), sliced(entry(replicas), strategy=strategy))

    assert built.problems == ()
    assert [warning.message.partition(",")[0] for warning in built.warnings] == said
    assert len(built.pools["nvidia.com/gpu"].shares) == 2 * replicas
