"""The search beside two that have nothing in common with it: by hand for few GPUs, by tables for more."""

from __future__ import annotations

from random import Random

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from gpushare.allocation import BestEffort, Topology
from support.partitions import by_hand, by_tables, partitions
from support.topologies import FIXTURES, Matrix, at_random, machines


def required_of(available: list[int], size: int, random: Random) -> list[int]:
    return random.sample(available, random.randint(0, min(size, 3))) if random.random() < 0.4 else []


@pytest.mark.parametrize("size", [2, 3, 4])
def test_the_hand_is_right(size: int) -> None:
    """What the search is compared with writes down the partitions of four devices as they are published."""
    published = FIXTURES["best_effort"]["partition_enumeration_of_0123"][str(size)]
    written = [
        [["pad" if place < 0 else place for place in members] for members in each]
        for each in partitions([0, 1, 2, 3, *[-1] * (-4 % size)], size)
    ]

    # The published ones have full sets first, whatever opened first.
    assert [sorted(each, key=lambda members: "pad" in members) for each in written] == published


@settings(max_examples=1000, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 9))
def test_few(seed: int, count: int) -> None:
    """Any nine GPUs, some of them available, some required, any size: exactly what the contract says."""
    random = Random(seed)
    matrix = at_random(count, random)
    available = sorted(random.sample(range(count), random.randint(1, count)))
    size = random.randint(1, len(available))
    required = required_of(available, size, random)

    found = BestEffort().choose(Topology.from_pair_scores(matrix), available, required, size)
    assert sorted(found) == sorted(by_hand(matrix, available, required, size))


@pytest.mark.parametrize("size", range(2, 9))
@pytest.mark.parametrize("count", [8, 9])
def test_every_size(count: int, size: int) -> None:
    """Each size of eight and nine GPUs, often, since every size is a problem of its own."""
    random = Random(1000 * count + size)
    for _ in range(60 if size < count else 5):
        matrix = at_random(count, random)
        required = required_of(list(range(count)), size - 1, random)
        found = BestEffort().choose(Topology.from_pair_scores(matrix), range(count), required, size)
        assert sorted(found) == sorted(by_hand(matrix, range(count), required, size))


def check_by_tables(matrix: Matrix, required: list[int], size: int) -> None:
    count = len(matrix)
    found = BestEffort().choose(Topology.from_pair_scores(matrix), range(count), required, size)
    assert found == by_tables(matrix, required, size)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32), st.integers(10, 13), st.data())
def test_more(seed: int, count: int, data: st.DataObject) -> None:
    """Ten to thirteen GPUs, where sets are ruled out rather than tried."""
    random = Random(seed)
    size = data.draw(st.integers(2, count - 1))
    check_by_tables(at_random(count, random), required_of(list(range(count)), size - 1, random), size)


@pytest.mark.parametrize("size", range(2, 16))
def test_sixteen(size: int) -> None:
    """All sizes of sixteen GPUs at random, every other one with a GPU that is required."""
    random = Random(size)
    check_by_tables(at_random(16, random), [random.randrange(16)] * (size % 2), size)


@pytest.mark.parametrize("size", [2, 3, 4, 7, 8, 11])
@pytest.mark.parametrize("name", machines())
def test_machines(name: str, size: int) -> None:
    """Machines that people have are full of equal scores, where the order of partitions decides."""
    matrix = machines()[name]
    if size < len(matrix):
        check_by_tables(matrix, [], size)


@pytest.mark.parametrize("count", [17, 20, 24, 32])
def test_many(count: int) -> None:
    """Above sixteen GPUs: a valid answer of every size, as good as its bound says, proven best where that is cheap."""
    matrix = at_random(count, Random(count))
    topology = Topology.from_pair_scores(matrix)
    for size in range(2, count):
        partition = BestEffort().divide(topology, range(count), [count - 1], size)
        assert partition is not None
        members = [gpu for each in (*partition.sets, partition.rest) for gpu in each]
        assert sorted(members) == list(range(count))
        assert all(len(each) == size for each in partition.sets)
        assert len(partition.rest) == count % size
        assert count - 1 in partition.chosen
        assert partition.total == sum(topology.score_of_set(each) for each in (*partition.sets, partition.rest))
        assert partition.total <= partition.bound
        assert partition.is_exact or size not in (count - 1, count - 2)


@pytest.mark.parametrize("size", [4, 6, 8])
def test_no_worse_than_the_mean(size: int) -> None:
    """Where it is not proven best, a partition without a rest has at least the mean total of all of them."""
    matrix = at_random(24, Random(size))
    partition = BestEffort().divide(Topology.from_pair_scores(matrix), range(24), [], size)

    assert partition is not None
    everything = sum(map(sum, matrix)) // 2
    assert partition.total * 23 >= everything * (size - 1)


def test_what_is_weighed_up() -> None:
    """All sets of the best partition; nothing is weighed up where there is nothing to choose."""
    volta = Topology.from_pair_scores(machines()["DGX-1"])
    partition = BestEffort().divide(volta, [7, 6, 5, 4, 3, 2, 1], [], 2)

    assert partition is not None
    assert (partition.sets, partition.rest, partition.total) == (((1, 5), (2, 3), (6, 7)), (4,), 710)
    assert partition.chosen == (2, 3)
    assert partition.is_exact
    assert BestEffort().divide(volta, range(8), [], 8) is None
    assert BestEffort().divide(volta, range(8), [1, 2], 2) is None
    assert BestEffort().divide(volta, range(8), [], 1) is None
    assert BestEffort().divide(volta, range(8), [], 9) is None
