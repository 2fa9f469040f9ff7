"""Which shares a container should get."""

from __future__ import annotations

from collections import Counter
from random import Random

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from gpushare.allocation.preferring import choose
from gpushare.domain.pools import Allocation, Pool, Share
from gpushare.domain.shares import ShareId


def pool(gpus: int, replicas: int, allocation: Allocation = Allocation.DISTRIBUTED) -> Pool:
    """GPUs a, b, c, ..., each with so many shares; with 0 they are whole."""
    shares = [
        Share(id=ShareId(chr(97 + index), number), gpu_index=index)
        for index in range(gpus)
        for number in (range(replicas) if replicas else (None,))
    ]
    return Pool(resource="r", base="r", shares=tuple(shares), replicas=max(replicas, 1), allocation=allocation)


DISTRIBUTED, PACKED, DISTINCT = Allocation.DISTRIBUTED, Allocation.PACKED, Allocation.DISTINCT


@pytest.mark.parametrize(
    ("policy", "free", "required", "size", "expected"),
    [
        pytest.param(DISTRIBUTED, "a0 a1 b0 b1", "", 1, "a0", id="the first of all"),
        pytest.param(DISTRIBUTED, "a0 a1 b0 b1", "", 3, "a0 b0 a1", id="spread"),
        pytest.param(DISTRIBUTED, "a3 b1 b2", "", 1, "b1", id="the less used GPU"),
        pytest.param(PACKED, "a3 b1 b2", "", 1, "a3", id="the more used GPU"),
        pytest.param(PACKED, "a0 a1 a2 a3 b0 b1 b2 b3", "", 5, "a0 a1 a2 a3 b0", id="stack, then the next"),
        pytest.param(DISTRIBUTED, "a0 a1 a2 b0 b1", "a2", 2, "a2 b0", id="with one that must be in"),
        pytest.param(PACKED, "a0 a1 b0 b1 b2 b3", "b2", 2, "b2 a0", id="stacked on what is used more"),
        pytest.param(DISTRIBUTED, "a0 b0", "", 2, "a0 b0", id="all that is left"),
        pytest.param(DISTRIBUTED, "a0 b0", "b0 a0", 2, "b0 a0", id="all must be in"),
        pytest.param(DISTRIBUTED, "a0 b0", "", 3, "", id="too few"),
        pytest.param(DISTRIBUTED, "a0 b0", "a1", 1, "", id="must be in, but is not free"),
        pytest.param(DISTRIBUTED, "a0 b0", "a0 b0", 1, "", id="more must be in than are wanted"),
        pytest.param(DISTRIBUTED, "a0 b0", "", 0, "", id="nothing wanted"),
        pytest.param(DISTRIBUTED, "a0 z9", "", 2, "", id="an id of another time"),
        pytest.param(DISTINCT, "a0 a1 b0 b1", "", 2, "a0 b0", id="distinct"),
        pytest.param(DISTINCT, "a0 a1", "", 2, "", id="distinct, but only one GPU has room"),
        pytest.param(DISTINCT, "a0 a1 b0", "a0 a1", 2, "", id="distinct, but two of one must be in"),
        pytest.param(DISTINCT, "a0 b0 b1 c0", "b1", 2, "b1 a0", id="distinct from the one that must be in"),
        pytest.param(DISTINCT, "a3 b2 b3", "", 1, "b2", id="distinct spreads"),
    ],
)
def test_shares(policy: Allocation, free: str, required: str, size: int, expected: str) -> None:
    """Each policy on four shares a GPU."""
    ids = {f"{device}{number}": f"{device}::{number}" for device in "abcz" for number in range(10)}
    found = choose(
        pool(3, 4, policy), [ids[name] for name in free.split()], [ids[name] for name in required.split()], size
    )

    assert found == tuple(ids[name] for name in expected.split())


@pytest.mark.parametrize(
    ("free", "required", "size", "expected"),
    [
        pytest.param("c a b", "", 2, "a b", id="lowest index first"),
        pytest.param("c a b", "c", 2, "c a", id="with one that must be in"),
        pytest.param("b c", "", 2, "b c", id="all"),
        pytest.param("b c", "", 3, "", id="too few"),
    ],
)
def test_whole_gpus(free: str, required: str, size: int, expected: str) -> None:
    """Whole GPUs by index, whatever the order in which the kubelet names them."""
    assert choose(pool(3, 0), free.split(), required.split(), size) == tuple(expected.split())


def test_shares_go_by_number_not_by_text() -> None:
    """Share 10 comes after share 9."""
    found = choose(pool(1, 12), [f"a::{number}" for number in (10, 9, 11)], [], 2)

    assert found == ("a::9", "a::10")


@st.composite
def questions(draw: st.DrawFn) -> tuple[Pool, list[str], list[str], int]:
    found = pool(draw(st.integers(1, 4)), draw(st.integers(0, 4)), draw(st.sampled_from(Allocation)))
    ids = [*found.by_id, "gone::0"]
    available = draw(st.lists(st.sampled_from(ids), unique=True))
    required = draw(st.lists(st.sampled_from(available or ids), max_size=3))
    return found, available, required, draw(st.integers(-1, 6))


@settings(max_examples=200, deadline=None)
@given(questions(), st.randoms(use_true_random=False))
def test_never_more_than_there_is(question: tuple[Pool, list[str], list[str], int], random: Random) -> None:
    """Nothing, or as many as asked for: available, known, each once, all that must be in, the same in any order."""
    found, available, required, size = question
    chosen = choose(found, available, required, size)

    shuffled = list(available)
    random.shuffle(shuffled)
    assert choose(found, shuffled, required, size) == chosen
    if chosen:
        assert len(chosen) == len(set(chosen)) == size
        assert set(required) <= set(chosen) <= set(available) & found.by_id.keys()
    if chosen and found.allocation is Allocation.DISTINCT:
        assert max(Counter(found.by_id[share_id].id.device for share_id in chosen).values()) == 1


@settings(max_examples=100, deadline=None)
@given(questions())
def test_spread_and_stacked(question: tuple[Pool, list[str], list[str], int]) -> None:
    """Distributed leaves no GPU two shares ahead of another that had one to give."""
    found, available, _, size = question
    chosen = choose(found, available, [], size)
    if not chosen or found.allocation is not Allocation.DISTRIBUTED:
        return
    total = Counter(share.id.device for share in found.shares)
    left = Counter(found.by_id[share_id].id.device for share_id in set(available) & found.by_id.keys() - set(chosen))
    taken = Counter(found.by_id[share_id].id.device for share_id in chosen)
    used = {device: total[device] - left[device] for device in total}
    assert all(used[giver] <= used[other] + 1 for giver in taken for other in left)
