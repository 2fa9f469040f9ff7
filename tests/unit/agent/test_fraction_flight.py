"""For which pod an Allocate is: never guessed."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from gpushare.agent.fractions.flight import Flight, count_ids
from gpushare.agent.fractions.pods import BoundPod, read_pod
from gpushare.agent.fractions.reporting import build_holdings
from gpushare.domain.fractions import Dialect, FractionMode
from gpushare.kubelet.values import ContainerDevices
from gpushare.sharing.responses import RequestRefused
from support.bound_pods import UUIDS, Containers, bound, grant, units

MODE = FractionMode(dialect=Dialect.HAMI)
STARTED = {"phase": "Pending", "startTime": "2026-11-29T12:00:00Z"}


def pod(name: str, containers: Containers, **fields: Any) -> BoundPod:
    found = read_pod(bound(name, containers, **fields), fields.get("dialect", Dialect.HAMI))
    assert found is not None
    return found


def flying(*pods: BoundPod, mode: FractionMode = MODE) -> Flight:
    """Nobody was there before."""
    flight = Flight(mode)
    flight.see_all([], 0)
    for each in pods:
        flight.see(each)
    return flight


def holder(name: str, *ids: str, container: str = "main", resource: str = "nvidia.com/gpu") -> ContainerDevices:
    return ContainerDevices(namespace="default", pod=name, container=container, resource=resource, ids=ids)


def slot(gpu: int, number: int = 0) -> str:
    return f"{UUIDS[gpu]}::{number}"


def one(gpu: int = 0) -> Containers:
    return {"main": (grant(gpu),)}


def titles(flight: Flight, size: int = 1) -> list[str]:
    return [entry.title for entry in flight.find(size)]


def refusal(flight: Flight, size: int = 1) -> str:
    with pytest.raises(RequestRefused) as caught:
        flight.find(size)
    return str(caught.value)


def test_pods_that_are_alike() -> None:
    """Any of them will do; which one it was is learnt afterwards."""
    flight = flying(pod("a", one(0)), pod("b", one(1)))

    assert titles(flight) == ["container main of default/a", "container main of default/b"]


def test_one_pod_of_several_containers() -> None:
    """They come in their order, each with what is its own."""
    flight = flying(pod("a", {"big": (grant(0, 8000),), "small": (grant(1, 1000),)}))

    [first] = flight.find(1)
    flight.give(first, [slot(0)])
    [second] = flight.find(1)
    flight.give(second, [slot(1)])

    assert (first.container, second.container) == ("big", "small")
    assert "no pod that was placed on this node waits for 1 of nvidia.com/gpu" in refusal(flight)


def test_different_pods_are_not_told_apart() -> None:
    """The scheduler keeps them apart; should it fail to, nobody gets what is another one's."""
    flight = flying(pod("a", one(0), shape="x"), pod("b", one(1), shape="y"))

    assert refusal(flight) == ("it cannot be told for which pod this is, of default/a and default/b, which differ")


def test_a_stranger_makes_it_uncertain() -> None:
    """A pod that nobody placed asks for as much: it may be the one that the kubelet means."""
    flight = flying(pod("a", one(0)), pod("plain", one(), annotation=""))

    assert "of default/a and default/plain" in refusal(flight)


@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        pytest.param("", "no scheduler of fractions has placed it", id="plain"),
        pytest.param("{}", "not a decision of the scheduler", id="forged"),
    ],
)
def test_a_stranger_gets_nothing(annotation: str, reason: str) -> None:
    """It is told why."""
    flight = flying(pod("plain", one(), annotation=annotation))

    assert f"default/plain is not let in: {reason}" in refusal(flight)


def test_another_number_than_decided() -> None:
    """Whoever asks is not who was placed."""
    flight = flying(pod("a", one(0)))

    assert refusal(flight, 2) == "2 of nvidia.com/gpu are asked for, and container main of default/a was given 1"


@pytest.mark.parametrize(
    "status",
    [
        pytest.param(STARTED, id="let in"),
        pytest.param({"phase": "Failed"}, id="refused"),
        pytest.param({"phase": "Succeeded"}, id="done"),
    ],
)
def test_who_has_come(status: dict[str, str]) -> None:
    """Nothing more is to be answered."""
    flight = flying(pod("a", one(0), status=status))

    refusal(flight)


def test_the_kubelet_tells() -> None:
    """A pod has landed with the ids of an Allocate that was answered."""
    flight = flying(pod("a", one(0)))
    flight.give(flight.find(1)[0], [slot(0)])

    flight.see_holders([holder("a", slot(0))])

    [(place, holding)] = build_holdings(flight).items()
    assert place == ("default", "a", "main")
    assert (holding.pod_uid, holding.grants, holding.told) == ("uid-a", {UUIDS[0]: grant(0)}, True)


def test_who_had_the_name_before() -> None:
    """The kubelet tells no uids: ids that were not answered since belong to an earlier pod of the name."""
    flight = flying(pod("a", one(0)))

    flight.see_holders([holder("a", slot(3))])

    assert build_holdings(flight) == {}
    assert titles(flight) == ["container main of default/a"]


def test_a_restarted_agent_believes_the_kubelet() -> None:
    """What was answered by the agent before is known from the kubelet alone."""
    flight = Flight(MODE)
    flight.see_all([pod("a", one(0)), pod("b", one(1))], 1000)

    flight.see_holders([holder("a", slot(0))])

    assert titles(flight) == ["container main of default/b"]
    assert list(build_holdings(flight)) == [("default", "a", "main")]


def test_swapped() -> None:
    """The pod of the kubelet's choice has what was planned for another: that one gets what is left."""
    flight = flying(pod("a", one(0)), pod("b", one(1)))
    flight.give(flight.find(1)[0], [slot(0)])  # taken for a

    flight.see_holders([holder("b", slot(0))])

    [entry] = flight.find(1)
    assert (entry.pod.name, entry.grants) == ("a", (grant(1),))
    assert flight.used(UUIDS[0]) == flight.used(UUIDS[1]) == (3000, 30)


def test_let_in_before_the_kubelet_tells() -> None:
    """As many answers are settled as a pod needs, whichever pod they were taken for."""
    a, b = pod("a", one(0)), pod("b", one(1))
    flight = flying(a, b)
    flight.give(flight.find(1)[0], [slot(0)])  # taken for a

    flight.see(pod("b", one(1), status=STARTED))

    [entry] = flight.find(1)
    assert (entry.pod.name, entry.grants) == ("a", (grant(1),))


def test_containers_that_end_first() -> None:
    """The kubelet does not tell of them; a pod that has no others is confirmed by its start."""
    containers = {"first": (grant(0, 2000),)}
    flight = flying(pod("a", containers, inits=("first",)))
    flight.give(flight.find(1)[0], [slot(0)])
    assert build_holdings(flight) == {}

    flight.see(pod("a", containers, inits=("first",), status=STARTED))

    [holding] = build_holdings(flight).values()
    assert (holding.pod_uid, holding.told) == ("uid-a", False)


def test_use_is_the_most_at_one_time() -> None:
    """What ends before the others begin is not added to them."""
    containers = {"first": (grant(0, 8000, 50),), "x": (grant(0, 3000, 10),), "y": (grant(0, 4000, 20),)}
    flight = flying(pod("a", containers, inits=("first",)), pod("b", one(1)))

    assert flight.used(UUIDS[0]) == (8000, 50)


def test_units_follow_the_ids() -> None:
    """Of units, the ids say how much it is on which GPU."""
    mode = FractionMode(dialect=Dialect.ALIYUN)
    flight = flying(pod("a", {"main": (units(4, 0),)}, dialect=Dialect.ALIYUN), mode=mode)
    ids = [f"{UUIDS[1]}-_-{number}" for number in range(4)]
    flight.give(flight.find(4)[0], ids)

    flight.see_holders([holder("a", *ids, resource="aliyun.com/gpu-mem")])

    [holding] = build_holdings(flight).values()
    assert holding.grants == {UUIDS[1]: units(4, 1)}


def test_old_news() -> None:
    """A watch that lags behind a list changes nothing."""
    older, newer = pod("a", one(0)), pod("a", one(0), status=STARTED)
    flight = flying(newer)

    flight.see(older)

    assert flight.pods["uid-a"].started


def test_gone() -> None:
    """A pod that is deleted, or not among those of a list, is not waited for; one that came after the list is."""
    a, b, c = pod("a", one(0)), pod("b", one(1)), pod("c", one(2))
    flight = flying(a, b, c)

    flight.forget("uid-a")
    flight.see_all([], b.version)

    assert titles(flight) == ["container main of default/c"]


@pytest.mark.parametrize(
    ("holders", "open_again"),
    [
        pytest.param([holder("gone", slot(1)), holder("c", slot(2))], True, id="a pod has them that is gone"),
        pytest.param([holder("c", slot(2))], True, id="nobody has them"),
        pytest.param([holder("b", slot(1)), holder("c", slot(2))], False, id="the pod has them"),
        pytest.param([holder("b", slot(2)), holder("c", slot(1))], False, id="one has them that may be taken for it"),
    ],
)
def test_an_answer_for_a_pod_that_is_gone(holders: list[ContainerDevices], open_again: bool) -> None:
    """What it was taken for can still be asked for, once the kubelet tells so while it waits."""
    flight = flying(pod("gone", one(0)), pod("b", one(1)), pod("c", one(2)))
    flight.forget("uid-gone")
    for number in (1, 2):
        flight.give(flight.find(1)[0], [slot(number)])

    flight.reopen(holders)

    if open_again:
        assert titles(flight) == ["container main of default/b"]
    else:
        refusal(flight)


def test_nothing_is_taken_back_while_another_pod_waits() -> None:
    """Then there is an answer without it."""
    flight = flying(pod("a", one(0)), pod("b", one(1)))
    flight.give(flight.find(1)[0], [slot(0)])

    flight.reopen([])

    assert titles(flight) == ["container main of default/b"]


def test_answers_of_init_containers_are_not_taken_back() -> None:
    """The kubelet does not tell of them."""
    flight = flying(pod("a", {"first": (grant(0),)}, inits=("first",)))
    flight.give(flight.find(1)[0], [slot(0)])

    flight.reopen([])

    refusal(flight)


@given(
    gpus=st.lists(st.integers(0, 3), min_size=1, max_size=6),
    order=st.randoms(use_true_random=False),
    told_late=st.booleans(),
)
def test_replicas_in_any_order(gpus: list[int], order: Any, told_late: bool) -> None:
    """However the kubelet orders replicas, each gets an answer, and what is planned is what is given, GPU by GPU."""
    pods = [pod(f"p{index}", one(gpu)) for index, gpu in enumerate(gpus)]
    flight = flying(*pods)
    kubelet = list(pods)
    order.shuffle(kubelet)
    free = dict.fromkeys(range(4), 0)
    holders: list[ContainerDevices] = []

    for each in kubelet:
        entry = flight.find(1)[0]
        [(uuid, _)] = count_ids(entry.grants).items()
        gpu = UUIDS.index(uuid)
        text = slot(gpu, free[gpu])
        free[gpu] += 1
        flight.give(entry, [text])
        holders.append(holder(each.name, text))
        if not told_late:
            flight.see_holders(holders)
    flight.see_holders(holders)

    assert [free[gpu] for gpu in range(4)] == [gpus.count(gpu) for gpu in range(4)]
    assert len(build_holdings(flight)) == len(gpus)
    refusal(flight)
