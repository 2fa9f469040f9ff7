"""Which MPS daemons a node needs: figures, differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import given

from gpushare.api.sharing import DeviceSelection, SharedResource, SharingConfig
from gpushare.domain.devices import ComputeCapability, Health, Inventory, MigStrategy
from gpushare.domain.pools import Strategy
from gpushare.sharing.building import build_pools
from gpushare.sharing.mps import DaemonChanges, MemoryLimit, MpsDaemon, build_changes, build_daemons
from support.inventories import configs, entry, gpu, inventories, node, sliced, split_gpu, t4s

GPU = "nvidia.com/gpu"
SHARED = "nvidia.com/gpu.shared"
OLD = ComputeCapability(major=6, minor=1)
VOLTA = ComputeCapability(major=7, minor=0)


def by_mps(*entries: SharedResource) -> SharingConfig:
    return sliced(*entries, strategy=Strategy.MPS)


def daemons(inventory: Inventory, config: SharingConfig) -> Mapping[str, MpsDaemon]:
    return build_daemons(build_pools(inventory, config, MigStrategy.NONE).pools, inventory)


def test_figures() -> None:
    """Memory and threads are divided by the number of replicas, and rounded down."""
    found = daemons(t4s(2), by_mps(entry(3)))

    assert found == {
        GPU: MpsDaemon(
            resource=GPU,
            thread_percentage=33,
            memory_limits=(MemoryLimit(gpu_index=0, mib=5120), MemoryLimit(gpu_index=1, mib=5120)),
            gpus=(gpu(0).uuid, gpu(1).uuid),
        )
    }


@pytest.mark.parametrize(
    ("inventory", "config", "expected"),
    [
        pytest.param(t4s(2), SharingConfig(), {}, id="nothing shared"),
        pytest.param(t4s(2), sliced(entry(4)), {}, id="time slicing"),
        pytest.param(node(), by_mps(entry(4)), {}, id="no GPU"),
        pytest.param(t4s(1), by_mps(entry(4, "nvidia.com/none")), {}, id="a resource that the node lacks"),
        pytest.param(node(split_gpu(0, "1g.5gb")), by_mps(entry(4)), {}, id="MIG is on"),
        pytest.param(t4s(1), by_mps(entry(49)), {}, id="more clients than an MPS server takes"),
        pytest.param(t4s(1), by_mps(entry(48)), {GPU: [0]}, id="as many as it takes"),
        pytest.param(node(gpu(0, compute_capability=VOLTA)), by_mps(entry(17)), {}, id="more than Volta takes"),
        pytest.param(
            node(gpu(0, compute_capability=VOLTA)), by_mps(entry(16)), {GPU: [0]}, id="as many as Volta takes"
        ),
        pytest.param(node(gpu(0, compute_capability=OLD)), by_mps(entry(2)), {}, id="too old for limits"),
        pytest.param(t4s(3), by_mps(entry(2, devices=DeviceSelection(refs=("1",)))), {GPU: [1]}, id="some GPUs"),
        pytest.param(t4s(2), by_mps(entry(2, offered_as=SHARED)), {SHARED: [0, 1]}, id="renamed"),
    ],
)
def test_which(inventory: Inventory, config: SharingConfig, expected: dict[str, list[int]]) -> None:
    """One daemon a resource, on the GPUs that are shared under it."""
    found = daemons(inventory, config)

    assert {name: list(daemon.gpus) for name, daemon in found.items()} == {
        name: [gpu(index).uuid for index in indices] for name, indices in expected.items()
    }


def test_unknown_memory() -> None:
    """A GPU that does not tell its memory has no limit of it; its index is NVML's, whatever is missing before it."""
    (daemon,) = daemons(node(gpu(1, memory_mib=0), gpu(5, memory_mib=15)), by_mps(entry(2))).values()

    assert daemon.memory_limits == (MemoryLimit(gpu_index=5, mib=7),)
    assert daemon.gpus == (gpu(1).uuid, gpu(5).uuid)


def test_health_changes_nothing() -> None:
    """A daemon is not restarted because one of its GPUs is sick: its other clients would pay for it."""
    sick = node(gpu(0, health=Health(healthy=False, reason="XID 79")), gpu(1))

    assert daemons(sick, by_mps(entry(2))) == daemons(t4s(2), by_mps(entry(2)))


@given(inventories(), configs())
def test_never_more_than_there_is(inventory: Inventory, config: SharingConfig) -> None:
    """All shares of a GPU together get at most the GPU."""
    pools = build_pools(inventory, config, MigStrategy.NONE).pools
    memory = {each.index: each.memory_mib for each in inventory.gpus}

    for name, daemon in build_daemons(pools, inventory).items():
        replicas = pools[name].replicas
        assert 0 < daemon.thread_percentage * replicas <= 100
        assert all(limit.mib * replicas <= memory[limit.gpu_index] for limit in daemon.memory_limits)
        assert set(daemon.gpus) == {share.id.device for share in pools[name].shares if share.id.number is not None}


def daemon(resource: str, percentage: int = 25) -> MpsDaemon:
    return MpsDaemon(resource=resource, thread_percentage=percentage)


def test_changes() -> None:
    """One goes, one changes, one comes, one stays and is not touched."""
    known = [daemon("gone"), daemon("other"), daemon("same")]
    wanted = {each.resource: each for each in (daemon("new"), daemon("other", 50), daemon("same"))}

    assert build_changes(known, wanted) == DaemonChanges(
        end=(daemon("gone"), daemon("other")), begin=(daemon("new"), daemon("other", 50))
    )


some_daemons = st.dictionaries(st.sampled_from("abcd"), st.integers(1, 3)).map(
    lambda found: {name: daemon(name, percentage) for name, percentage in found.items()}
)


@given(some_daemons, some_daemons)
def test_changes_lead_there(known: dict[str, MpsDaemon], wanted: dict[str, MpsDaemon]) -> None:
    """Whoever carries them out has what was wanted, and has left alone what was right."""
    changes = build_changes(known.values(), wanted)
    left = {name: each for name, each in known.items() if each not in changes.end}

    assert left | {each.resource: each for each in changes.begin} == wanted
    assert all(known.get(each.resource) != each for each in changes.begin)


def test_a_changed_gpu_is_a_change() -> None:
    """Same figures, other hardware: the compute mode of the new GPU has to be set."""
    one = replace(daemon("a"), gpus=("GPU-1",))

    assert build_changes([one], {"a": replace(one, gpus=("GPU-2",))}).end == (one,)
