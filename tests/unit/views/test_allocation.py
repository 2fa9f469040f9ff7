"""Why these GPUs, in words."""

from __future__ import annotations

import pytest

from gpushare.allocation import BestEffort, Topology
from gpushare.allocation.explaining import explain
from gpushare.allocation.policies import read_request
from gpushare.domain.devices import Inventory
from gpushare.views.allocation import Answer, build_answer, build_document
from support.inventories import gpu, t4s
from support.topologies import known, matrix_of, tree

VOLTA = Topology.from_pair_scores(known("dgx1-volta"))
PAIR = """\
GPU  UUID                                      PRODUCT   BUS  NUMA
0    GPU-00000000-0000-0000-0000-000000000000  Tesla T4  -    0
3    GPU-00000003-0000-0000-0000-000000000000  Tesla T4  -    1

PAIR  LINK  SCORE
0-3   -     230
all         230

best-effort divides the 5 free GPUs into sets of 2, as if every later request asked for as many, so that all scores add up \
to the most: 460.
  SET  SCORE
  0 3  230    taken
  1 2  230
  4    0      left over
GPU 2, 3 would score 250; of divisions with equal totals, the first in order is taken."""


def answer(topology: Topology, available: list[int], size: int, *required: int, policy: str = "best-effort") -> Answer:
    request = read_request(topology, available, required, size)
    assert request is not None
    chosen = BestEffort().choose(topology, available, required, size)
    return Answer(
        policy=policy,
        gpus=[gpu(index) for index in chosen],
        topology=topology,
        free=len(available),
        explanation=explain(topology, request) if policy == "best-effort" else None,
    )


def reasons(found: Answer) -> str:
    return build_answer(found).rpartition("\n\n")[2]


def test_best_effort() -> None:
    """The GPUs, their pairs, the division that they come from, and what else there was."""
    assert build_answer(answer(VOLTA, [0, 1, 2, 3, 4], 2)) == PAIR


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(answer(VOLTA, [0, 1, 2], 3), "There are no others: 3 are free.", id="all"),
        pytest.param(answer(VOLTA, [1, 2], 1), "A single GPU has no links to weigh up", id="one"),
        pytest.param(answer(VOLTA, [1, 2, 3], 2, 1, 3), "All of them must be in.", id="all required"),
        pytest.param(answer(VOLTA, [0, 1, 2], 2, policy="simple"), "simple takes the lowest indices", id="simple"),
        pytest.param(
            answer(VOLTA, [0, 1, 2], 2, policy="static-dgx2"),
            "static-dgx2 takes the first set of its table for 2 that is free",
            id="static",
        ),
    ],
)
def test_reasons(found: Answer, expected: str) -> None:
    """One sentence where nothing was weighed up, more where something was."""
    assert expected in reasons(found)


def test_a_better_set_that_costs_others() -> None:
    """The highest score of all is left alone where the others would lose more; it is named, with what it would cost."""
    scores = {(0, 1): 100, (1, 2): 110, (2, 3): 100}
    topology = Topology.from_pair_scores(matrix_of(4, lambda one, two: scores.get((one, two), 0)))

    assert "GPU 1, 2 would score 110, but then all sets add up to 110 at most." in reasons(
        answer(topology, [0, 1, 2, 3], 2)
    )


def test_not_proven() -> None:
    """Where there may be a better division, it says how much better at most."""
    topology = Topology.from_pair_scores(matrix_of(32, lambda one, two: (one * two) % 97))
    found = answer(topology, list(range(32)), 12)

    assert found.explanation is not None
    bound = found.explanation.partition.bound
    assert f"It is not proven that there is no better division: one could add up to {bound} at most." in reasons(found)
    assert found.explanation.alternative is None


def test_for_programs() -> None:
    """The same as data."""
    found = build_document(answer(VOLTA, list(range(8)), 2))

    assert found["gpus"][1] == {"index": 3, "uuid": gpu(3).uuid, "product": "Tesla T4"}
    assert found["pairs"] == [{"gpus": [0, 3], "score": 230}]
    assert found["partition"] == {"sets": [[0, 3], [1, 2], [4, 7], [5, 6]], "rest": [], "total": 920, "bound": 920}
    assert found["why"].startswith("best-effort divides the 8 free GPUs into sets of 2")
    assert "SET" not in found["why"]
    assert "partition" not in build_document(answer(VOLTA, [0, 1, 2], 3))


def test_one_gpu_has_no_pairs() -> None:
    """No empty table is shown."""
    topology = Topology.of(Inventory(gpus=t4s(2).gpus))

    assert "PAIR" not in build_answer(answer(topology, [0, 1], 1))


def test_equal_gpus() -> None:
    """Without anything better, no alternative is named."""
    assert "would score" not in reasons(answer(Topology.from_pair_scores(matrix_of(8, tree())), list(range(8)), 2))
