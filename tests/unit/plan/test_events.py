"""What people read in Events, and how often."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpushare.domain import manifests
from gpushare.domain.manifests import ObjectKey
from gpushare.errors import Problem
from gpushare.plan.build import build_plan
from gpushare.plan.events import EventNote, EventType, Note, build_events
from support.snapshots import (
    LATER,
    MAP,
    carry_out,
    config_map,
    node,
    policy,
    settle,
    sharing_policy,
    snapshot,
    time_slicing,
)  # fmt: skip

OBJECT = ObjectKey(manifests.NODE, "gpu01")
TOPIC = (OBJECT, "config")


def event(message: str, type_: EventType = EventType.NORMAL, uid: str = "u") -> EventNote:
    return EventNote(regarding=OBJECT, uid=uid, reason="Said", type=type_, message=message)


GOOD, OTHER, BAD = event("good"), event("other"), event("bad", EventType.WARNING)


@pytest.mark.parametrize(
    ("before", "note", "posted", "standing"),
    [
        pytest.param({}, Note(event=GOOD), [GOOD], GOOD, id="new"),
        pytest.param({TOPIC: GOOD}, Note(event=GOOD), [], GOOD, id="stands already"),
        pytest.param({TOPIC: event("good", uid="v")}, Note(event=GOOD), [], GOOD, id="the same of an object made anew"),
        pytest.param({TOPIC: GOOD}, Note(event=OTHER), [OTHER], OTHER, id="changed"),
        pytest.param({TOPIC: GOOD}, Note(event=None), [], GOOD, id="undecided"),
        pytest.param({}, Note(event=None), [], None, id="undecided from the start"),
        pytest.param(None, Note(event=GOOD), [GOOD], GOOD, id="new at the start"),
        pytest.param(None, Note(event=GOOD, known=True), [], GOOD, id="told before the restart"),
        pytest.param({}, Note(event=GOOD, known=True), [GOOD], GOOD, id="stored, and not told by us"),
        pytest.param({}, Note(event=GOOD, heals=True), [], GOOD, id="nothing to heal"),
        pytest.param({TOPIC: BAD}, Note(event=GOOD, heals=True), [GOOD], GOOD, id="healed"),
    ],
)  # fmt: skip
def test_posted(
    before: dict[tuple[ObjectKey, str], EventNote] | None,
    note: Note,
    posted: list[EventNote],
    standing: EventNote | None,
) -> None:
    """A note is posted when it begins to stand."""
    events, stands = build_events(before, {TOPIC: note})

    assert posted == list(events)
    assert standing == stands.get(TOPIC)


def test_partial_pass_forgets_nothing() -> None:
    """A pass that did not look at the nodes leaves standing what was said of them."""
    assert build_events({TOPIC: GOOD}, {}, partial=True)[1] == {TOPIC: GOOD}
    assert build_events({TOPIC: GOOD}, {})[1] == {}


def test_a_change_from_start_to_end() -> None:
    """A patch of the policy is told when the nodes run it: on policy and ConfigMap, and once on each node."""
    start, last = settle(snapshot(node("gpu01"), node("gpu02"), config_maps=(config_map(any=time_slicing(4)),)))
    current = replace(start, policies=(replace(start.policies[0], spec=sharing_policy("any").spec),))

    posted: list[EventNote] = []
    standing = last.standing
    for _ in range(3):
        plan = build_plan(current, LATER, standing)
        posted += plan.events
        current, standing = carry_out(current, plan), plan.standing

    told = [(str(item.regarding), item.reason, item.namespace) for item in posted]
    assert told == [
        ("ClusterPolicy cluster-policy", "ConfigApplied", "default"),
        (f"ConfigMap gpu-operator/{MAP}", "ConfigApplied", "gpu-operator"),
        ("Node gpu01", "ConfigApplied", "default"),
        ("Node gpu02", "ConfigApplied", "default"),
    ]
    assert posted[0].message.startswith("applied on 2 of 2 GPU nodes: any (revision ")
    assert posted[2].message.startswith("gpu01 runs any (revision ")


def test_bad_then_corrected() -> None:
    """A mistake is told once, and so is its correction, though no node ever changed."""
    maps = (config_map(any=time_slicing(4)),)
    good, last = settle(snapshot(node(), policies=(sharing_policy("any"),), config_maps=maps))

    bad, broken = settle(
        replace(good, policies=(replace(good.policies[0], spec=sharing_policy("anny").spec),)), before=last.standing
    )
    assert broken.events == ()

    back = build_plan(
        replace(bad, policies=(replace(bad.policies[0], spec=good.policies[0].spec),)), LATER, broken.standing
    )
    assert {(item.regarding.kind.kind, item.reason) for item in back.events} == {
        ("ClusterPolicy", "ConfigAccepted"), ("ConfigMap", "ConfigAccepted"), ("Node", "ConfigApplied"),
    }  # fmt: skip


def test_agents_warning_on_the_node() -> None:
    """A resource that a node lacks is a warning on that node, with what it runs."""
    maps = (config_map(any=time_slicing(4)),)
    good, last = settle(snapshot(node(), policies=(sharing_policy("any"),), config_maps=maps))
    [gpu_node] = good.gpu_nodes
    warned = replace(gpu_node.status, problems=(Problem(path="x", message="the node has no such GPU"),))

    plan = build_plan(replace(good, gpu_nodes=(replace(gpu_node, status=warned),)), LATER, last.standing)

    [told] = plan.events
    assert (told.regarding, told.type) == (OBJECT, EventType.WARNING)
    assert "gpu01 runs any (revision" in told.message
    assert "x: the node has no such GPU" in told.message


def test_second_policy() -> None:
    """A policy that is ignored hears so."""
    plan = build_plan(snapshot(policies=(policy(), policy("second", created="2026-02-01T00:00:00Z"))), LATER)

    assert [(item.regarding.name, item.reason) for item in plan.events] == [("second", "Ignored")]
