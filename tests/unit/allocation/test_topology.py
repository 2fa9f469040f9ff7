"""From links to figures."""

from __future__ import annotations

from itertools import product

import pytest

from gpushare.allocation import BestEffort, Topology
from gpushare.allocation.topology import score_of
from gpushare.domain.devices import Inventory
from gpushare.domain.links import Ancestor, Link
from support.inventories import gpu
from support.topologies import FIXTURES

PLACES = {
    1: Ancestor.SYSTEM,
    2: Ancestor.NUMA_NODE,
    3: Ancestor.HOST_BRIDGE,
    4: Ancestor.SWITCHES,
    5: Ancestor.SWITCH,
    6: Ancestor.BOARD,
}
"""By the numbers of the recorded topologies."""


def node(count: int, *links: Link) -> Inventory:
    return Inventory(gpus=tuple(map(gpu, range(count))), links=links)


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        *(
            pytest.param({"ancestor": place}, int(score), id=place.name)
            for place, score in zip(PLACES.values(), FIXTURES["score_per_link"]["p2p"].values(), strict=True)
        ),
        pytest.param({}, 0, id="nothing known"),
        pytest.param({"ancestor": Ancestor.SYSTEM, "nvlinks": 12}, 1210, id="NVLinks and PCI are added"),
        pytest.param({"nvlinks": 18}, 1800, id="as many NVLinks as there can be"),
        pytest.param({"nvlinks": 24}, 1800, id="more count no more"),
        pytest.param({"ancestor": Ancestor.SWITCH, "switched": 6}, 650, id="through NVSwitches"),
        pytest.param({"nvlinks": 12, "switched": 12}, 1800, id="both, up to the most"),
    ],
)
def test_score(link: dict[str, int], expected: int) -> None:
    """The figures of go-gpuallocator."""
    assert score_of(Link(gpus=(0, 1), **link)) == expected  # type: ignore[arg-type]


def test_reference_score() -> None:
    """go-gpuallocator does not see NVSwitches."""
    link = Link(gpus=(0, 1), ancestor=Ancestor.SWITCH, nvlinks=1, switched=6)

    assert score_of(link, through_switches=False) == 150


@pytest.mark.parametrize("name", FIXTURES["topologies"])
def test_recorded_machines(name: str) -> None:
    """The recorded places and counts give the recorded scores."""
    recorded = FIXTURES["topologies"][name]
    count = len(recorded["p2p"])
    links = [
        Link(gpus=(one, two), ancestor=PLACES.get(recorded["p2p"][one][two]), nvlinks=recorded["nvlinks"][one][two])
        for one, two in product(range(count), range(count))
        if one < two
    ]

    assert [list(row) for row in Topology.of(node(count, *links)).scores] == recorded["pair_scores"]


def test_holes() -> None:
    """A lost GPU leaves a hole: the others keep their indices, and its links say nothing."""
    gpus = (gpu(0), gpu(3))
    links = (Link(gpus=(0, 3), ancestor=Ancestor.SWITCH), Link(gpus=(0, 1), nvlinks=9))
    topology = Topology.of(Inventory(gpus=gpus, links=links))

    assert topology.gpus == (0, 3)
    assert topology.scores == ((0, 50), (50, 0))
    assert topology.links == links[:1]
    assert [topology.score(0, 3), topology.score(3, 0), topology.score(0, 1), topology.score(3, 3)] == [50, 50, 0, 0]
    assert topology.known_of([3, 1, 3, 0]) == (0, 3)


def test_no_links_asked_for() -> None:
    """An inventory without links has GPUs that are all equally far from each other."""
    assert BestEffort().choose(Topology.of(node(4)), range(4), [], 2) == (0, 1)


def test_whole_fabric_changes_no_answer() -> None:
    """NVSwitches that all GPUs hang on alike add the same to each pair."""
    places = [Link(gpus=(0, 3), ancestor=Ancestor.SWITCH), Link(gpus=(1, 2), ancestor=Ancestor.SWITCH)]
    switched = [Link(gpus=link.gpus, ancestor=link.ancestor, switched=18) for link in places]
    others = [Link(gpus=pair, switched=18) for pair in ((0, 1), (0, 2), (1, 3), (2, 3))]
    with_switches = Topology.of(node(4, *switched, *others))

    assert with_switches.score(0, 1) == 1800
    assert Topology.of(node(4, *switched, *others), through_switches=False) != with_switches
    for available in ([0, 1, 2, 3], [1, 2, 3]):
        found = BestEffort().choose(with_switches, available, [], 2)
        assert found == BestEffort().choose(Topology.of(node(4, *places)), available, [], 2)


def test_sets_and_parts() -> None:
    """The score of a set is that of its pairs; a part keeps the order in which it was asked for."""
    topology = Topology.from_pair_scores(FIXTURES["topologies"]["rtx8000x4"]["pair_scores"])

    assert topology.score_of_set([0, 1, 3]) == 20 + 200 + 10
    assert topology.score_of_set([2]) == 0
    assert topology.matrix((3, 0)) == ((0, 200), (200, 0))
    assert topology.matrix((2,)) == ((0,),)
    assert topology.matrix(()) == ()
    assert topology.matrix((0, 1, 2, 3)) is topology.scores


def test_one_sided_scores() -> None:
    """Where the directions of a pair differ, the lesser counts; the diagonal counts nothing."""
    assert Topology.from_pair_scores([[7, 200], [100, 7]]).scores == ((0, 100), (100, 0))


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        pytest.param([[0, 1], [1]], "row 1 has 1 scores; a matrix of 2 GPUs has 2 in each", id="not square"),
        pytest.param([[0, -1], [-1, 0]], "row 0 has a score that is no whole number", id="negative"),
        pytest.param([[0, 1.5], [1.5, 0]], "row 0 has a score that is no whole number", id="no whole number"),
    ],
)
def test_no_matrix(matrix: list[list[int]], message: str) -> None:
    """A mistake is named, row by row."""
    with pytest.raises(ValueError, match=message):
        Topology.from_pair_scores(matrix)
