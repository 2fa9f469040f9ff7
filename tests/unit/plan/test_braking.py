"""The brake: who waits, for what, and what ends the waiting."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpushare.domain.gpunode import Config
from gpushare.domain.selectors import Selector
from gpushare.plan import braking
from gpushare.plan.braking import Candidate
from gpushare.plan.build import build_plan
from gpushare.plan.rollouts import Phase, Progress
from support.snapshots import (
    NOW,
    SETTINGS,
    carry_out,
    config_map,
    node,
    settle,
    sharing_policy,
    snapshot,
    time_slicing,
)

OLD, NEW = Config(content="old"), Config(content="new")
CANARY = replace(SETTINGS, canary=Selector.parse("pool=canary"))
STEPS = replace(SETTINGS, stop_on_refusal=True)
BOTH = replace(CANARY, stop_on_refusal=True)


def waiting(name: str, *, wanted: Config = NEW, canary: bool = False) -> Candidate:
    """Runs the old, and would be given something."""
    progress = Progress(phase=Phase.WAITING, config=wanted)
    return Candidate(name=name, canary=canary, wanted=wanted, stored=OLD, progress=progress)


def given_to(name: str, phase: Phase = Phase.APPLIED, *, canary: bool = False, remedy: str = "") -> Candidate:
    """Was given the new."""
    progress = Progress(phase=phase, config=NEW, remedy=remedy)
    return Candidate(name=name, canary=canary, wanted=NEW, stored=NEW, progress=progress)


FLEET = [waiting(f"gpu{number}") for number in range(4)]


def test_no_brake() -> None:
    """By default, all at once."""
    assert braking.hold([waiting("c", canary=True), *FLEET], SETTINGS) == {}


@pytest.mark.parametrize(
    ("canaries", "text"),
    [
        pytest.param([waiting("c", canary=True)], "until canary node c has applied", id="not given yet"),
        pytest.param([given_to("c", Phase.WAITING, canary=True)], "until canary node c has applied", id="at it"),
        pytest.param([given_to("c", Phase.REFUSED, canary=True)], "canary node c cannot use what was named", id="refused"),
        pytest.param([given_to("c", Phase.KEPT, canary=True)], "canary node c cannot use what was named", id="not valid"),
        pytest.param(
            [given_to("c", canary=True), given_to("d", Phase.WAITING, canary=True)], "until canary node d has", id="one of two"
        ),
        pytest.param([], "no GPU node has the labels of canary nodes (pool=canary); label one", id="none"),
        pytest.param(
            [replace(given_to("c", canary=True), progress=None)], "no agent runs on canary node c", id="one without an agent"
        ),
        pytest.param([given_to("c", canary=True)], "", id="done"),
    ],
)  # fmt: skip
def test_canaries(canaries: list[Candidate], text: str) -> None:
    """The others wait until all canary nodes are done, and never the canary nodes themselves."""
    held = braking.hold([*canaries, *FLEET], CANARY)

    assert set(held) == ({each.name for each in FLEET} if text else set())
    assert all(text in reason for reason in held.values())


@pytest.mark.parametrize(
    "candidate",
    [
        pytest.param(replace(FLEET[0], stored=None), id="it has nothing yet"),
        pytest.param(replace(FLEET[0], stored=replace(NEW, reason=Config().reason)), id="the same text from elsewhere"),
        pytest.param(replace(FLEET[0], wanted=OLD), id="nothing is new for it"),
    ],
)
def test_nothing_to_wait_for(candidate: Candidate) -> None:
    """Only what an agent has to apply, in the place of something else, is braked."""
    assert braking.hold([given_to("c", Phase.WAITING, canary=True), candidate], CANARY) == {}


@pytest.mark.parametrize(
    ("given", "free"),
    [
        pytest.param([], 1, id="the first alone"),
        pytest.param([given_to("a", Phase.WAITING)], 0, id="while it is at it"),
        pytest.param([given_to("a")], 1, id="then as many as there are"),
        pytest.param([given_to("a"), given_to("b")], 2, id="twice as many"),
        pytest.param([given_to("a"), given_to("b"), given_to("c", Phase.WAITING)], 1, id="what is left of a step"),
        pytest.param(
            [given_to("a", Phase.WAITING, remedy="kubectl logs a")], 1, id="whose agent is away holds up nobody"
        ),
        pytest.param([given_to("a"), given_to("b", Phase.REFUSED)], 0, id="stopped"),
    ],
)
def test_steps(given: list[Candidate], free: int) -> None:
    """As many at once as run it already; none after a refusal."""
    held = braking.hold([*given, *FLEET], STEPS)

    assert len(FLEET) - len(held) == free
    # In order, so that people know who is next.
    assert set(held) == {each.name for each in FLEET[free:]}


def test_refusal_of_another_revision() -> None:
    """What one configuration does to its nodes is no matter of another one."""
    other = Config(content="other")
    held = braking.hold([given_to("a", Phase.REFUSED), waiting("b", wanted=other), waiting("c")], STEPS)

    assert set(held) == {"c"}
    assert "stopped, since node a refuses it" in held["c"]


def test_canaries_take_no_steps() -> None:
    """They are chosen to go first, all of them."""
    canaries = [waiting(f"c{number}", canary=True) for number in range(3)]

    assert set(braking.hold([*canaries, *FLEET], BOTH)) >= {each.name for each in FLEET}


@given(st.integers(1, 40), st.booleans())
def test_everybody_arrives(size: int, canary: bool) -> None:
    """Nodes that can apply it all get it, in few rounds, whatever the brake."""
    fleet = {f"gpu{number:02}": waiting(f"gpu{number:02}", canary=canary and number == 0) for number in range(size)}
    rounds = 0
    while any(each.moves for each in fleet.values()):
        held = braking.hold(list(fleet.values()), BOTH if canary else STEPS)
        fleet |= {name: given_to(name, canary=each.canary) for name, each in fleet.items() if name not in held}
        rounds += 1
        assert rounds <= 8


def test_on_the_policy() -> None:
    """Held nodes are counted and named, their GPUNodes stay as they are; an agent in trouble is named as ever."""
    nodes = (replace(node("gpu0"), canary=True), node("gpu1"), node("gpu2"))
    start = snapshot(*nodes, policies=(sharing_policy("any"),), config_maps=(config_map(any=time_slicing(4)),))
    settled, _ = settle(start)
    down = tuple(replace(pod, ready=pod.node != "gpu2", trouble="CrashLoopBackOff") for pod in settled.agent_pods)
    edited = replace(settled, settings=CANARY, config_maps=(config_map(any=time_slicing(8)),), agent_pods=down)

    plan = build_plan(edited, NOW)

    assert [spec.name for spec in plan.gpu_nodes] == ["gpu0"]
    assert [item.name for item in plan.gpu_node_conditions] == ["gpu2"]
    [status] = plan.policies
    rolled_out = next(each for each in status.conditions if each.type == "RolledOut")
    assert (rolled_out.status, rolled_out.reason) == ("False", "Held")
    assert rolled_out.message == (
        "applied on 0 of 3 GPU nodes (1 held back, 2 waiting); "
        "gpu1 keeps what it has: until canary node gpu0 has applied what it was given; waiting for gpu0; "
        "waiting for gpu2 (CrashLoopBackOff): kubectl logs -n gpu-operator agent-gpu2"
    )

    after = carry_out(replace(edited, agent_pods=settled.agent_pods), plan)
    assert [spec.name for spec in build_plan(after, NOW).gpu_nodes] == ["gpu1", "gpu2"]
