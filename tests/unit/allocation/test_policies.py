"""Every policy against go-gpuallocator's own tables, its known defects, and what no policy may ever do."""

from __future__ import annotations

from random import Random
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from gpushare.allocation import BestEffort, Policy, Simple, StaticDGX1, StaticDGX2, Topology
from support.topologies import FIXTURES, at_random, known, matrix_of, tree

BEST_EFFORT, SIMPLE, STATIC = FIXTURES["best_effort"], FIXTURES["simple"], FIXTURES["static"]
POLICIES = {
    "best-effort": BestEffort(),
    "simple": Simple(),
    "static-dgx1-pascal": StaticDGX1("pascal"),
    "static-dgx1-volta": StaticDGX1("volta"),
    "static-dgx2": StaticDGX2(),
}


def cases(entries: list[dict[str, Any]]) -> list[Any]:
    return [
        pytest.param(entry, id=f"{entry['size']} of {entry['available']} with {entry['required']}") for entry in entries
    ]


def answer(policy: Policy, topology: str, case: dict[str, Any]) -> list[int]:
    matrix = Topology.from_pair_scores(known(topology))
    return list(policy.choose(matrix, case["available"], case["required"], case["size"]))


@pytest.mark.parametrize("case", cases(BEST_EFFORT["policy_cases"]["cases"]))
def test_best_effort(case: dict[str, Any]) -> None:
    """The published table for a DGX-1 with Voltas."""
    assert answer(BestEffort(), BEST_EFFORT["policy_cases"]["topology"], case) == case["result"]


@pytest.mark.parametrize("case", cases(SIMPLE["cases"]))
def test_simple(case: dict[str, Any]) -> None:
    """The published table, in which the order of the answer counts."""
    assert answer(Simple(), SIMPLE["topology"], case) == case["result"]


@pytest.mark.parametrize("case", cases(STATIC["dgx1-volta_policy_cases"]))
def test_static(case: dict[str, Any]) -> None:
    """The published table of the static policy."""
    assert answer(StaticDGX1("volta"), "dgx1-volta", case) == case["result"]


SEQUENCES = [
    *((BestEffort(), each["topology"], each["steps"]) for each in BEST_EFFORT["sequences"]),
    *((StaticDGX1("pascal"), "dgx1-pascal", steps) for steps in STATIC["sequences"]["dgx1-pascal"]),
    *((StaticDGX1("volta"), "dgx1-volta", steps) for steps in STATIC["sequences"]["dgx1-volta"]),
]


@pytest.mark.parametrize(
    ("policy", "topology", "steps"),
    [
        pytest.param(policy, topology, steps, id=f"{type(policy).__name__} {topology} {[size for size, _ in steps]}")
        for policy, topology, steps in SEQUENCES
    ],
)
def test_sequences(policy: Policy, topology: str, steps: list[tuple[int, list[int]]]) -> None:
    """One request after the other, each from what the ones before it left."""
    scores = Topology.from_pair_scores(known(topology))
    left = list(scores.gpus)
    for size, expected in steps:
        assert list(policy.choose(scores, left, (), size)) == expected
        left = [gpu for gpu in left if gpu not in expected]


@pytest.mark.parametrize(
    ("name", "policy", "count"),
    [
        pytest.param("dgx1-pascal", StaticDGX1("pascal"), 8, id="DGX-1 Pascal"),
        pytest.param("dgx1-volta", StaticDGX1("volta"), 8, id="DGX-1 Volta"),
        pytest.param("dgx2-volta", StaticDGX2(), 16, id="DGX-2"),
    ],
)
def test_static_tables(name: str, policy: Policy, count: int) -> None:
    """Every set of the table can be had when it is all that is left, and nothing of another size."""
    topology = Topology.from_pair_scores(matrix_of(count, tree()))
    table = STATIC["valid_sets"][name]

    for size in range(1, count + 1):
        sets = table.get(str(size), [])
        assert bool(policy.choose(topology, range(count), (), size)) is bool(sets)
        for gpus in sets:
            assert list(policy.choose(topology, gpus, (), size)) == gpus


def test_static_puts_what_is_required_first() -> None:
    """Required GPUs in the table's order, then the others of their set."""
    topology = Topology.from_pair_scores(known("dgx1-volta"))

    assert StaticDGX1("volta").choose(topology, range(8), [7, 5], 4) == (5, 7, 4, 6)


def test_no_such_machine() -> None:
    """A DGX-1 of another generation is a mistake of the caller."""
    with pytest.raises(ValueError, match="'ampere' GPUs; there are 'pascal' and 'volta'"):
        StaticDGX1("ampere")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case["note"]) for case in FIXTURES["reference_defect_cases"]["padded_set_returned"]]
)
def test_padding_is_never_returned(case: dict[str, Any]) -> None:
    """Where the leftover outscores the full sets, go-gpuallocator answers with holes; we with GPUs."""
    places, nvlinks = case["p2p"], case["nvlinks"]
    topology = Topology.from_pair_scores(
        matrix_of(len(places), lambda one, two: 10 * places[one][two] + 100 * nvlinks[one][two])
    )

    assert list(BestEffort().choose(topology, case["available"], (), case["size"])) == case["correct_result"]


def test_the_winner_is_not_overwritten() -> None:
    """With seven sets and more, go-gpuallocator replaces the last sets of the winner by those of later candidates."""
    pairs = [(0, 13), (1, 12), (2, 11), (3, 10), (4, 9), (5, 8), (6, 7)]
    topology = Topology.from_pair_scores(matrix_of(14, lambda one, two: 500 + 100 * two if (one, two) in pairs else 10))

    assert BestEffort().choose(topology, range(14), (), 2) == (0, 13)
    partition = BestEffort().divide(topology, range(14), (), 2)
    assert partition is not None
    assert list(partition.sets) == pairs


def test_order_of_the_question_does_not_matter() -> None:
    """The kubelet names devices in any order; of equal answers always the same is given."""
    topology = Topology.from_pair_scores(matrix_of(8, tree()))

    assert BestEffort().choose(topology, [7, 3, 5, 0, 2], (), 3) == (0, 2, 3)


@st.composite
def questions(draw: st.DrawFn) -> tuple[Topology, list[int], list[int], int]:
    """Topologies with holes, and questions with repetitions, GPUs that do not exist and impossible sizes."""
    count = draw(st.integers(1, 10))
    full = Topology.from_pair_scores(at_random(max(count, 2), Random(draw(st.integers(0, 10**6)))))
    gpus = tuple(sorted(draw(st.sets(st.integers(0, 17), min_size=count, max_size=count))))
    topology = Topology(gpus=gpus, scores=full.matrix(range(count)))
    available = draw(st.lists(st.sampled_from([*gpus, 99]), max_size=14))
    required = draw(st.lists(st.sampled_from(available or [0]), max_size=3))
    return topology, available, required, draw(st.integers(-1, count + 1))


@pytest.mark.parametrize("policy", [pytest.param(policy, id=name) for name, policy in POLICIES.items()])
@settings(max_examples=150, deadline=None)
@given(questions())
def test_what_no_policy_does(policy: Policy, question: tuple[Topology, list[int], list[int], int]) -> None:
    """Nothing, or as many as asked for: known, available, each once, all that is required, whatever the order of the question."""
    topology, available, required, size = question
    chosen = policy.choose(topology, available, required, size)

    assert policy.choose(topology, available[::-1], required, size) == chosen
    if chosen:
        assert len(chosen) == len(set(chosen)) == size
        assert set(required) <= set(chosen) <= set(available) & set(topology.gpus)


@settings(max_examples=150, deadline=None)
@given(questions())
def test_who_always_finds_something(question: tuple[Topology, list[int], list[int], int]) -> None:
    """The policies without a table answer whenever there is an answer."""
    topology, available, required, size = question
    free = set(available) & set(topology.gpus)
    is_possible = 0 < size <= len(free) and len(set(required)) <= size and set(required) <= free

    assert bool(BestEffort().choose(topology, available, required, size)) is is_possible
    assert bool(Simple().choose(topology, available, required, size)) is is_possible
