"""Giving GPUs out and taking them back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from gpushare.allocation import Allocator, BestEffort, Policy, Simple, StaticDGX1
from gpushare.domain.devices import Health, Inventory
from gpushare.domain.links import Link
from gpushare.errors import AllocationError
from support.inventories import gpu, t4s


def indices(gpus: Sequence[object]) -> list[int]:
    return [each.index for each in gpus]  # type: ignore[attr-defined]


def test_bridged_pairs() -> None:
    """The README's example: GPUs with NVLinks between them go together, until none are left."""
    bridges = (Link(gpus=(0, 3), nvlinks=2), Link(gpus=(1, 2), nvlinks=2))
    allocator = Allocator(replace(t4s(4), links=bridges), BestEffort())

    first = allocator.allocate(2)
    assert indices(first) == [0, 3]
    assert indices(allocator.allocate(2)) == [1, 2]
    assert indices(allocator.allocated) == [0, 1, 2, 3]

    allocator.free(*first)
    assert indices(allocator.remaining) == [0, 3]
    assert indices(allocator.allocate(1, required=[3])) == [3]


def test_specific() -> None:
    """By index, by UUID or by the GPU itself; asking for nothing is granted."""
    inventory = t4s(4)
    allocator = Allocator(inventory, Simple())

    given = allocator.allocate_specific(2, inventory.gpus[0].uuid, inventory.gpus[3], 2)
    assert indices(given) == [2, 0, 3]
    assert allocator.allocate_specific() == ()
    assert indices(allocator.remaining) == [1]


def test_sick_gpus_stay() -> None:
    """A GPU that is not healthy is never given out."""
    sick = replace(gpu(1), health=Health(healthy=False, reason="XID 79"))
    allocator = Allocator(Inventory(gpus=(gpu(0), sick)), Simple())

    assert indices(allocator.remaining) == [0]
    with pytest.raises(AllocationError, match="GPU 1 is not free; free: GPU 0"):
        allocator.allocate_specific(1)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        pytest.param(lambda a: a.allocate(4), "4 wanted, but only 3 free: GPU 1, 2, 3", id="too many"),
        pytest.param(lambda a: a.allocate(0), "0 GPUs cannot be given out; ask for 1 or more", id="none"),
        pytest.param(
            lambda a: a.allocate(1, required=[0]), "GPU 0 is required, but not free; free: GPU 1, 2, 3", id="in use"
        ),
        pytest.param(lambda a: a.allocate(1, required=[1, 2]), "GPU 1, 2 cannot all be among 1", id="more required"),
        pytest.param(lambda a: a.allocate(1, required=[7]), "no GPU 7; known: GPU 0, 1, 2, 3", id="unknown index"),
        pytest.param(lambda a: a.allocate_specific("GPU-x"), "no GPU GPU-x; known: GPU 0, 1, 2, 3", id="unknown UUID"),
        pytest.param(
            lambda a: a.allocate_specific(gpu(1, uuid="GPU-y")), "no GPU GPU-y; known", id="GPU of another node"
        ),
        pytest.param(lambda a: a.allocate_specific(1, 0), "GPU 0 is not free; free: GPU 1, 2, 3", id="one is in use"),
        pytest.param(lambda a: a.free(0, 1, 2), "GPU 1, 2 are not given out; given out: GPU 0", id="not given out"),
    ],
)
def test_refusals(ask: Callable[[Allocator], object], message: str) -> None:
    """What cannot be done is said, and nothing of it is done."""
    allocator = Allocator(t4s(4), BestEffort())
    allocator.allocate_specific(0)

    with pytest.raises(AllocationError, match=message):
        ask(allocator)
    assert (indices(allocator.allocated), indices(allocator.remaining)) == ([0], [1, 2, 3])


def test_nothing_left() -> None:
    """Even then the message reads well."""
    allocator = Allocator(t4s(1), BestEffort())
    allocator.allocate(1)

    with pytest.raises(AllocationError, match="1 wanted, but only 0 free: none"):
        allocator.allocate(1)


def test_policy_without_an_answer() -> None:
    """A table does not have every size."""
    with pytest.raises(AllocationError, match="policy StaticDGX1 has no set of 3 among the free GPUs: GPU 0, 1, 2, 3"):
        Allocator(t4s(4), StaticDGX1("volta")).allocate(3)


class Answering:
    """A policy that always says the same."""

    def __init__(self, *answer: int) -> None:
        self.answer = answer

    def choose(self, *_: object) -> tuple[int, ...]:
        return self.answer


@pytest.mark.parametrize(
    ("policy", "required"),
    [
        pytest.param(Answering(0, 1, 2), [], id="too many"),
        pytest.param(Answering(0, 0), [], id="one twice"),
        pytest.param(Answering(0, 9), [], id="one that there is not"),
        pytest.param(Answering(0, 1), [2], id="without what is required"),
    ],
)
def test_policy_that_is_wrong(policy: Policy, required: list[int]) -> None:
    """Anybody's policy is believed only as far as its answer can be carried out."""
    allocator = Allocator(t4s(4), policy)

    with pytest.raises(
        AllocationError, match=r"policy Answering answered GPU 0, .* when asked for 2 of GPU 0, 1, 2, 3"
    ):
        allocator.allocate(2, required=required)
    assert allocator.allocated == ()


def test_many_threads() -> None:
    """No GPU is given out twice, however many ask at once."""
    allocator = Allocator(t4s(16), BestEffort())
    with ThreadPoolExecutor(8) as threads:
        given = list(threads.map(lambda _: allocator.allocate(2), range(8)))

    assert sorted(each.index for gpus in given for each in gpus) == list(range(16))
