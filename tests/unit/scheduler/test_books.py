"""The books: whatever is told, in whichever order and however often, they end as if only the last of it had been told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings

from gpushare.domain.fractions import Decision, Dialect, Grant
from gpushare.domain.gpunode import GPUNode
from gpushare.placement.index import FitIndex
from gpushare.scheduler.books import Books, Placed, Stage
from gpushare.scheduler.flights import Flights
from gpushare.scheduler.pods import SeenPod, correct, trim
from support.placements import hami
from support.schedulers import gpu_node, pod

NODES = ("n1", "n2")
UIDS = ("a", "b", "c", "d")
RESERVED = ("r1", "r2")


def new_books() -> Books:
    index = FitIndex()
    return Books(Flights(), index.put, index.remove)


def seen(uid: str, node: str, memory: int, *, started: str = "", decided: bool = True, gpu: int = 0) -> SeenPod:
    decision = Decision(
        pod_uid=uid,
        dialect=Dialect.HAMI,
        shape=str(memory),
        containers={"main": (Grant(f"GPU-{node}-{gpu}", memory, 10),)},
    )
    return SeenPod(
        uid=uid, namespace="ns", name=uid, node=node, decision=decision if decided else None, started=started
    )


def reported(node: str, held: Mapping[str, int], *, gpus: int = 2) -> GPUNode:
    """A GPUNode on which pods hold GPUs, by index."""
    body = gpu_node(node, gpus)
    body["status"]["allocations"] = [
        {
            "index": index,
            "containers": [
                {"namespace": "ns", "pod": uid, "podUID": uid, "container": "main", "resource": "r", "memoryMiB": 700}
                for uid in sorted(uid for uid, at in held.items() if at == index)
            ],
        }
        for index in sorted(set(held.values()))
    ]
    return GPUNode.from_json(body)


@dataclass
class Truth:
    """What was told last of everything."""

    pods: dict[str, SeenPod] = field(default_factory=dict)
    nodes: dict[str, GPUNode] = field(default_factory=dict)

    def tell(self, books: Books) -> None:
        for node in self.nodes.values():
            books.see_gpu_node(node)
        for each in self.pods.values():
            books.see_pod(each)


STEPS = st.one_of(
    st.builds(
        lambda uid, node, memory, started, gpu: ("pod", seen(uid, node, memory, started=started, gpu=gpu)),
        st.sampled_from(UIDS),
        st.sampled_from(NODES),
        st.sampled_from((1000, 2000)),
        st.sampled_from(("", "2026")),
        st.integers(0, 1),
    ),
    st.tuples(st.just("gone"), st.sampled_from(UIDS)),
    st.builds(
        lambda node, held, gpus: ("node", reported(node, held, gpus=gpus)),
        st.sampled_from(NODES),
        st.dictionaries(st.sampled_from(UIDS), st.integers(0, 1), max_size=3),
        st.integers(1, 2),
    ),
    st.tuples(st.just("node gone"), st.sampled_from(NODES)),
    st.tuples(st.just("reserve"), st.sampled_from(RESERVED)),
    st.tuples(st.just("release"), st.sampled_from(RESERVED)),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=25))
def test_books_are_level_triggered(steps: list[tuple[str, Any]]) -> None:
    """Use, charges and flights are those of what exists, and of nothing else."""
    books, truth = new_books(), Truth()
    for kind, what in steps:
        _step(books, truth, kind, what)
    for uid in RESERVED:
        books.release(uid)
    fresh = new_books()
    truth.tell(fresh)

    assert {name: (node.uses, dict(node.pods)) for name, node in books.nodes.items()} == {
        name: (node.uses, dict(node.pods)) for name, node in fresh.nodes.items()
    }
    assert {name: charge for name, charge in books.charges.items() if any(charge)} == {
        name: charge for name, charge in fresh.charges.items() if any(charge)
    }
    assert {uid: placed.containers for uid, placed in books.pods.items()} == {
        uid: placed.containers for uid, placed in fresh.pods.items()
    }
    unconfirmed = {uid for uid, placed in books.pods.items() if placed.stage < Stage.CONFIRMED}
    for node in books.nodes:
        assert books.flights.aboard(node) >= {uid for uid in unconfirmed if books.pods[uid].node == node}
        assert all(books.pods[uid].node == node for uid in books.flights.aboard(node))


def _step(books: Books, truth: Truth, kind: str, what: Any) -> None:
    match kind:
        case "pod":
            # A pod is bound once; what changes is how far it is.
            known = truth.pods.get(what.uid)
            told = what if known is None else SeenPod(**{**_fields(known), "started": known.started or what.started})
            truth.pods[what.uid] = told
            books.see_pod(told)
        case "gone":
            truth.pods.pop(what, None)
            books.drop_pod(what)
        case "node":
            truth.nodes[what.name] = what
            books.see_gpu_node(what)
        case "node gone":
            truth.nodes.pop(what, None)
            books.drop_gpu_node(what)
        case "reserve":
            wanted = seen(what, "n1", 500)
            books.reserve(
                Placed(
                    uid=what,
                    namespace="ns",
                    name=what,
                    node="n1",
                    decision=wanted.decision,
                    kinds={},
                    stage=Stage.RESERVED,
                )
            )
        case "release":
            books.release(what)


def _fields(pod_: SeenPod) -> dict[str, Any]:
    return {name: getattr(pod_, name) for name in SeenPod.__dataclass_fields__}


def test_a_list_does_not_end_reservations() -> None:
    """It may be older than the Binding; what it does show, or what was bound and is missing there, counts."""
    books = new_books()
    _step(books, Truth(), "reserve", "r1")
    books.see_pod(seen("a", "n1", 1000))
    books.drop_other_pods(frozenset())

    assert set(books.pods) == {"r1"}


def test_an_agent_that_is_quicker_than_the_watch() -> None:
    """A list that is older than the Binding does not end a reservation either of which the agent has told meanwhile."""
    books = new_books()
    books.see_gpu_node(reported("n1", {}))
    _step(books, Truth(), "reserve", "r1")
    books.see_gpu_node(reported("n1", {"r1": 0}))
    books.drop_other_pods(frozenset())
    assert [use.memory_mib for use in books.nodes["n1"].uses] == [500, 0]

    books.see_pod(seen("r1", "n1", 500))
    assert books.pods["r1"].stage is Stage.CONFIRMED


def test_an_end_is_the_end() -> None:
    """A list that was on its way while the watch told of a pod's end does not bring it back, to hold its GPU for ever."""
    books = new_books()
    books.see_gpu_node(reported("n1", {}))
    books.see_pod(seen("a", "n1", 1000))
    books.end_pod("a")
    books.see_pod(seen("a", "n1", 1000))

    assert (books.pods, books.charges) == ({}, {})
    assert [use.memory_mib for use in books.nodes["n1"].uses] == [0, 0]


def test_what_the_kubelet_chose_keeps_its_limits() -> None:
    """Other GPUs, with the memory that the agent tells, and what was decided where it tells none."""
    decided = {"a": (Grant("GPU-0", 100, 10, 2),), "b": (Grant("GPU-1", 50, 5),)}

    assert correct(decided, {}) == decided
    assert correct(decided, {"a": (Grant("GPU-0", 1, 1),)}) == decided
    assert correct(decided, {"a": (Grant("GPU-7", 0, 0),)})["a"] == (Grant("GPU-7", 100, 10, 2),)


def test_those_who_are_known_from_the_agent_alone() -> None:
    """A GPU that is held by a name of its own is nobody else's; a pod that is followed counts as it was decided, named or not."""
    body = gpu_node("n1", 3)
    body["status"]["allocations"] = [
        {"index": index, "containers": [{"namespace": "ns", "pod": name, "container": "main", "resource": resource}]}
        for index, (name, resource) in enumerate((("old", "nvidia.com/gpu.shared"), ("a", "nvidia.com/gpu")))
    ]
    books = new_books()
    books.see_pod(seen("a", "n1", 1000, gpu=1))
    books.see_gpu_node(GPUNode.from_json(body))

    assert [(use.alone, use.memory_mib) for use in books.nodes["n1"].uses] == [(1, 0), (0, 1000), (0, 0)]
    books.drop_pod("a")
    assert [use.alone for use in books.nodes["n1"].uses] == [1, 0, 0]


def test_little_is_kept_of_pods() -> None:
    """What asks for no GPU is not kept at all; of the others, what the books need."""
    assert trim(pod("a", {"name": "main"}), {"nvidia.com/gpu"}) is None
    asked = pod("a", {**hami(gpus=1), "image": "x"}, nodeName="n1", priority=5)
    asked["metadata"] |= {"uid": "u", "annotations": {"gpushare.dev/decision": "broken"}, "managedFields": ["x"]}
    kept = trim(asked, {"nvidia.com/gpu"})

    assert kept is not None
    assert "managedFields" not in kept["metadata"]
    found = SeenPod.of(kept)
    assert (found.uid, found.node, found.priority, found.decision, found.started) == ("u", "n1", 5, None, "")


def test_a_decision_about_another_pod() -> None:
    """A copied annotation is no decision."""
    asked = pod("a", hami(gpus=1), nodeName="n1")
    text = Decision(pod_uid="other", dialect=Dialect.HAMI, shape="s").to_annotation()
    asked["metadata"] |= {"uid": "u", "annotations": {"gpushare.dev/decision": text}}
    kept = trim(asked, ())

    assert kept is not None
    assert SeenPod.of(kept).decision is None
