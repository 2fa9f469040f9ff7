"""Who holds what."""

from __future__ import annotations

import pytest

from gpushare.agent.allocations import build_allocations, count_allocated, count_ghosts, shrink_beyond
from gpushare.domain.devices import MigStrategy
from gpushare.domain.gpunode import ContainerAllocation
from gpushare.kubelet.values import ContainerDevices
from gpushare.sharing.building import build_pools
from support.inventories import entry, gpu, sliced, split_gpu, t4s
from support.inventories import node as node_of

GPU = "nvidia.com/gpu"


def holder(*ids: str, resource: str = GPU, pod: str = "p") -> ContainerDevices:
    return ContainerDevices(namespace="n", pod=pod, container="c", resource=resource, ids=ids)


def held(index: int, *shares: int, pod: str = "p", resource: str = GPU) -> ContainerAllocation:
    return ContainerAllocation(gpu_index=index, namespace="n", pod=pod, container="c", resource=resource, shares=shares)


def test_grouped_by_gpu() -> None:
    """In order of GPU; whole devices have no share numbers; other plugins' devices are not ours."""
    inventory = t4s(2)
    pools = build_pools(inventory, sliced(entry(4)), MigStrategy.NONE).pools
    zero, one = gpu(0).uuid, gpu(1).uuid
    holders = [
        holder(f"{one}::3", f"{zero}::1", f"{one}::0", pod="b"),
        holder(zero, pod="a"),
        holder("GPU-gone::1"),
        holder("x", resource="example.com/nic"),
    ]

    assert build_allocations(holders, pools, inventory) == (
        held(0, pod="a"),
        held(0, 1, pod="b"),
        held(1, 0, 3, pod="b"),
    )
    assert count_allocated(holders) == {GPU: 5, "example.com/nic": 1}


def test_mig_instances_count_on_their_gpu() -> None:
    """The physical GPU is what people look for."""
    inventory = node_of(gpu(0), split_gpu(1, "1g.5gb"))
    name = "nvidia.com/mig-1g.5gb"
    pools = build_pools(inventory, sliced(), MigStrategy.MIXED).pools

    found = build_allocations([holder(inventory.gpus[1].mig[0].uuid, resource=name)], pools, inventory)

    assert found == (held(1, resource=name),)


@pytest.mark.parametrize(
    ("before", "after", "in_use", "expected"),
    [
        pytest.param(4, 2, 3, {GPU: (3, 2)}, id="too many in use"),
        pytest.param(4, 2, 2, {}, id="just fits"),
        pytest.param(2, 4, 3, {}, id="grows"),
        pytest.param(2, 2, 3, {}, id="stays"),
    ],
)
def test_shrink_beyond(before: int, after: int, in_use: int, expected: dict[str, tuple[int, int]]) -> None:
    """Only a resource that shrinks below its use is in the way."""
    served, wanted = (build_pools(t4s(1), sliced(entry(n)), MigStrategy.NONE).pools for n in (before, after))

    assert expected == shrink_beyond([holder(*map(str, range(in_use)))], served, wanted)


def test_shrink_to_nothing() -> None:
    """A resource that goes away offers none."""
    served = build_pools(t4s(1), sliced(entry(2)), MigStrategy.NONE).pools

    assert shrink_beyond([holder("a")], served, {}) == {GPU: (1, 0)}


def test_what_is_held_under_another_name_is_in_use() -> None:
    """Shares under a name that a resource had before are on the same GPUs as those of its new name."""
    shared = "nvidia.com/gpu.shared"
    renamed = [sliced(entry(count, offered_as=shared)) for count in (4, 2)]
    served, wanted = (build_pools(t4s(2), config, MigStrategy.NONE).pools for config in renamed)
    zero = gpu(0).uuid
    old = holder(*(f"{zero}::{number}" for number in range(3)))
    new = holder(f"{zero}::0", f"{zero}::1", resource=shared)

    assert shrink_beyond([old], served, wanted) == {}
    assert shrink_beyond([old, new], served, wanted) == {shared: (5, 4)}


def test_ghosts() -> None:
    """Ids that nobody offers any longer, on their physical GPU, also where that has been divided since."""
    inventory = node_of(gpu(0), gpu(1), split_gpu(2, "1g.5gb"))
    pools = build_pools(inventory, sliced(entry(2)), MigStrategy.MIXED).pools
    zero, one, two = (gpu(index).uuid for index in range(3))
    holders = [
        holder(f"{zero}::0", f"{zero}::2", f"{zero}::3"),
        holder(one),
        holder(two),
        holder(f"{one}::0", resource="nvidia.com/gpu.shared"),
        holder("GPU-gone::7"),
        holder("x", resource="example.com/nic"),
    ]

    assert count_ghosts(holders, pools, inventory) == {0: 2, 1: 2, 2: 1}
