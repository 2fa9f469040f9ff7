"""What a node serves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from gpushare.agent.deciding import Assignment, Decider, Decision
from gpushare.agent.options import AgentOptions
from gpushare.domain.devices import Inventory
from gpushare.domain.gpunode import revision_of
from gpushare.errors import Problem
from gpushare.host.files import HostFiles
from gpushare.host.state import LastGood
from support.inventories import t4s

GPU = "nvidia.com/gpu"
SHARED = "nvidia.com/gpu.shared"


def text(replicas: int, more: str = "") -> str:
    return f"sharing: {{timeSlicing: {{resources: [{{name: nvidia.com/gpu, replicas: {replicas}{more}}}]}}}}"


GOOD, OTHER = text(4), text(2)
BROKEN = "sharing: 1"
NO_FIT = text(4, ", devices: [7]")
WISHED = "imex: {channelIDs: [0]}"
REQUIRED = "imex: {channelIDs: [0], required: true}"
LAST_GOOD = LastGood(content=GOOD, mig_strategy="", config=None)


@pytest.fixture
def decider(tmp_path: Path) -> Decider:
    return Decider(AgentOptions(), HostFiles(tmp_path))


def decide(
    decider: Decider,
    content: str | None,
    *,
    in_force: LastGood | None = None,
    inventory: Inventory | None = None,
    resources: Sequence[str] = (),
    problem: Problem | None = None,
) -> Decision:
    assignment = None if content is None else Assignment(content=content, problem=problem)
    return decider.decide(assignment, in_force, inventory or t4s(2), resources)


@pytest.mark.parametrize(
    ("content", "in_force", "shares", "revision", "is_refused"),
    [
        pytest.param(OTHER, LAST_GOOD, 4, OTHER, False, id="assigned"),
        pytest.param("", LAST_GOOD, 2, "", False, id="unshared on purpose"),
        pytest.param(None, LAST_GOOD, 8, GOOD, False, id="nothing assigned keeps what is"),
        pytest.param(None, None, 2, None, False, id="nothing at all"),
        pytest.param(BROKEN, LAST_GOOD, 8, GOOD, True, id="unreadable keeps what is"),
        pytest.param(NO_FIT, LAST_GOOD, 8, GOOD, True, id="what does not fit keeps what is"),
        pytest.param(BROKEN, None, 2, None, True, id="unreadable from the start"),
        pytest.param(NO_FIT, None, 2, None, True, id="does not fit from the start"),
        pytest.param(REQUIRED, LAST_GOOD, 8, GOOD, True, id="a channel that is not there keeps what is"),
        pytest.param(WISHED, LAST_GOOD, 2, WISHED, False, id="a channel that need not be there"),
    ],
)
def test_decide(
    decider: Decider,
    content: str | None,
    in_force: LastGood | None,
    shares: int,
    revision: str | None,
    is_refused: bool,
) -> None:
    """The assigned one, else the one in force, else none."""
    decision = decide(decider, content, in_force=in_force)

    assert len(decision.pools[GPU].shares) == shares
    assert decision.revision == (None if revision is None else revision_of(revision))
    assert bool(decision.refusal) is is_refused


def test_text_that_cannot_be_fetched(decider: Decider) -> None:
    """Keeps what is in force, and says why."""
    problem = Problem(path="/c", message="cannot be read")

    decision = decide(decider, "", in_force=LAST_GOOD, problem=problem)

    assert decision.refusal == (problem,)
    assert len(decision.pools[GPU].shares) == 8


def test_what_is_in_force_fits_no_more(decider: Decider) -> None:
    """An index whose GPU has been taken out: unshared, and reported; never shares of a refused text."""
    in_force = LastGood(content=text(4, ", devices: [1]"), mig_strategy="", config=None)

    decision = decide(decider, None, in_force=in_force, inventory=t4s(1))

    assert len(decision.pools[GPU].shares) == 1
    assert decision.refusal


def test_names_known_to_the_kubelet(decider: Decider) -> None:
    """They stay, with nothing in them."""
    decision = decide(decider, GOOD, resources=(SHARED, GPU))

    assert {name: len(pool.shares) for name, pool in decision.pools.items()} == {GPU: 8, SHARED: 0}


def test_no_driver(decider: Decider) -> None:
    """Nothing can be served, and nothing is said to be missing."""
    decision = decider.decide(Assignment(content=GOOD), None, None, ())

    assert {name: len(pool.shares) for name, pool in decision.pools.items()} == {GPU: 0}
    assert decision.notes == ()
    assert decision.revision == revision_of(GOOD)


def test_missing_resource_is_noted(decider: Decider) -> None:
    """A warning beside what is in force."""
    decision = decide(decider, "sharing: {timeSlicing: {resources: [{name: nvidia.com/mig-1g.5gb, replicas: 2}]}}")

    assert not decision.refusal
    assert "has no nvidia.com/mig-1g.5gb" in str(decision.notes[0])


def test_policy_strategy_is_remembered(decider: Decider) -> None:
    """It is part of what is in force."""
    decision = decider.decide(Assignment(content=GOOD, mig_strategy="mixed"), None, t4s(1), ())

    assert decision.in_force is not None
    assert decision.in_force.mig_strategy == decision.settings.mig_strategy == "mixed"


def test_known_text_is_not_read_again(decider: Decider) -> None:
    """What the state file knows is what the text means."""
    parsed = decide(decider, OTHER).in_force
    assert parsed is not None
    # A content that the value has nothing to do with shows which of the two counts.
    decider.know(LastGood(content="nonsense", mig_strategy="", config=parsed.config))

    decision = decide(decider, "nonsense")

    assert len(decision.pools[GPU].shares) == 4
