"""Which devices a container should get."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from gpushare.allocation import Topology
from gpushare.allocation.preferring import choose
from gpushare.domain.pools import Allocation, Pool, Share
from gpushare.domain.shares import ShareId
from support.topologies import known


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


VOLTA = Topology.from_pair_scores(known("dgx1-volta"))


@pytest.mark.parametrize(
    ("free", "required", "size", "expected"),
    [
        pytest.param("h g f e d c b a", "", 2, "a d", id="NVLinks"),
        pytest.param("a b c d e f g h", "e", 2, "e h", id="with one that must be in"),
        pytest.param("a b c d e f g h", "h a", 3, "h a e", id="those that must be in come first"),
        pytest.param("e b", "", 1, "b", id="a single one"),
        pytest.param("e b", "", 2, "b e", id="all"),
        pytest.param("e b", "e b", 2, "e b", id="all must be in"),
    ],
)
def test_close_gpus(free: str, required: str, size: int, expected: str) -> None:
    """Whole GPUs by how close they are to each other, once that is known."""
    found = choose(pool(8, 0), free.split(), required.split(), size, topology=VOLTA)

    assert found == tuple(expected.split())


def test_gpus_of_another_time() -> None:
    """A topology that does not know the GPUs yet decides nothing: then they go by index."""
    assert choose(pool(10, 0), list("ji"), [], 1, topology=VOLTA) == ("i",)


@pytest.mark.parametrize(
    ("ghosts", "size", "expected"),
    [
        pytest.param({0: 1}, 2, "c d", id="a held GPU is left alone"),
        pytest.param({0: 1, 3: 1}, 4, "e f g h", id="as long as others do"),
        pytest.param(dict.fromkeys((0, 1, 2, 4, 5), 1), 4, "d f g h", id="of those that are held, the close ones"),
        pytest.param({0: 3, 1: 1, 2: 2}, 6, "b d e f g h", id="the least held one"),
        pytest.param(dict.fromkeys(range(8), 2), 2, "a d", id="all are held alike"),
    ],
)
def test_held_gpus(ghosts: dict[int, int], size: int, expected: str) -> None:
    """What the kubelet has forgotten still runs: such GPUs come last, whatever their links."""
    assert choose(pool(8, 0), list("abcdefgh"), [], size, topology=VOLTA, ghosts=ghosts) == tuple(expected.split())


def test_held_shares() -> None:
    """Shares of a GPU on which something of another time runs count as used."""
    assert choose(pool(2, 2), ["a::0", "a::1", "b::0", "b::1"], [], 1, ghosts={0: 1}) == ("b::0",)
    packed = pool(2, 2, PACKED)
    assert choose(packed, ["a::0", "a::1", "b::0", "b::1"], [], 1, ghosts={1: 1}) == ("b::0",)


def test_shares_of_close_gpus() -> None:
    """Among GPUs that are used alike, the one that is closest to those that the request has so far."""
    found = choose(pool(8, 2), list(pool(8, 2).by_id), [], 3, topology=VOLTA)

    assert found == ("a::0", "d::0", "c::0")


def sick(offered: Pool, *ids: str) -> Pool:
    return replace(offered, shares=tuple(replace(share, healthy=str(share.id) not in ids) for share in offered.shares))


def test_sick_devices() -> None:
    """A device that has just become sick is not offered, though the kubelet still takes it for free."""
    gpus, shared = sick(pool(3, 0), "a"), sick(pool(2, 2), "a::0")

    assert choose(gpus, ["a", "b", "c"], [], 2, topology=VOLTA) == ("b", "c")
    assert choose(gpus, ["a", "b", "c"], ["a"], 2) == ()
    assert choose(gpus, ["a", "b", "c"], [], 3) == ()
    assert choose(shared, ["a::0", "a::1", "b::0"], [], 2) == ("a::1", "b::0")


def test_sick_shares_are_not_in_use() -> None:
    """A sick share makes its device no more used than it is."""
    offered = sick(pool(2, 3), "a::0", "a::1")

    assert choose(offered, ["a::2", "b::1", "b::2"], [], 1) == ("a::2",)


def mig(allocation: Allocation, *counts: int) -> Pool:
    """GPUs with so many MIG instances each: a0, a1, ..., b0, ..."""
    shares = [
        Share(id=ShareId(f"{chr(97 + gpu)}{number}"), gpu_index=gpu, mig_index=number)
        for gpu, count in enumerate(counts)
        for number in range(count)
    ]
    return Pool(resource="r", base="r", shares=tuple(shares), allocation=allocation)


@pytest.mark.parametrize(
    ("allocation", "free", "size", "expected"),
    [
        pytest.param(DISTRIBUTED, "a0 a1 b0 b1", 2, "a0 b0", id="spread over GPUs"),
        pytest.param(DISTRIBUTED, "a1 b0 b1", 1, "b0", id="the less used GPU"),
        pytest.param(PACKED, "a1 b0 b1", 1, "a1", id="the more used GPU"),
        pytest.param(PACKED, "a0 a1 b0 b1", 3, "a0 a1 b0", id="stack, then the next"),
        pytest.param(DISTINCT, "a0 a1 b1", 2, "a0 b1", id="different GPUs, if there are"),
        pytest.param(DISTINCT, "a0 a1", 2, "a0 a1", id="else different instances"),
    ],
)
def test_mig_instances(allocation: Allocation, free: str, size: int, expected: str) -> None:
    """Instances are devices of their own; how much of their GPU is in use tells them apart."""
    assert choose(mig(allocation, 2, 2), free.split(), [], size) == tuple(expected.split())


def test_shares_go_by_number_not_by_text() -> None:
    """Share 10 comes after share 9."""
    found = choose(pool(1, 12), [f"a::{number}" for number in (10, 9, 11)], [], 2)

    assert found == ("a::9", "a::10")


@st.composite
def questions(draw: st.DrawFn) -> tuple[Pool, list[str], list[str], int]:
    found = pool(draw(st.integers(1, 5)), draw(st.integers(0, 4)), draw(st.sampled_from(Allocation)))
    ids = [*found.by_id, "gone::0"]
    available = draw(st.lists(st.sampled_from(ids), unique=True))
    required = draw(st.lists(st.sampled_from(available or ids), max_size=3))
    return found, available, required, draw(st.integers(-1, 6))


@settings(max_examples=200, deadline=None)
@given(questions(), st.randoms(use_true_random=False))
def test_never_more_than_there_is(question: tuple[Pool, list[str], list[str], int], random: Random) -> None:
    """Nothing, or as many as asked for: available, known, each once, all that must be in, the same in any order."""
    found, available, required, size = question
    more = {"topology": random.choice((None, VOLTA)), "ghosts": {random.randrange(5): random.randint(1, 3)}}
    chosen = choose(found, available, required, size, **more)

    shuffled = list(available)
    random.shuffle(shuffled)
    assert choose(found, shuffled, required, size, **more) == chosen
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
