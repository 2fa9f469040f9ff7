"""What people read in Events, and how often."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpushare.domain import manifests
from gpushare.domain.conditions import Condition
from gpushare.domain.events import EventNote, EventType
from gpushare.domain.gpunode import DEVICES_READY, revision_of
from gpushare.domain.manifests import ObjectKey
from gpushare.errors import Problem
from gpushare.plan.build import build_plan
from gpushare.plan.events import Note, build_events
from gpushare.plan.snapshot import Snapshot
from support.snapshots import (
    CONFIG,
    LATER,
    MAP,
    carry_out,
    condition_of,
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


def test_who_uses_shares_is_no_news() -> None:
    """A node that waits for pods to go does not say so again with every pod that comes or goes; that it shrank, it does."""
    text = "gpushare.onShrink: {} of nvidia.com/gpu are in use by {} and only 4 would be left; delete pods first"
    first, second = (replace(BAD, message=text.format(*each)) for each in ((6, "n/a, n/b"), (5, "n/a")))
    less = replace(BAD, message=second.message.replace("only 4", "only 2").replace("delete", "remove"))

    assert build_events({TOPIC: first}, {TOPIC: Note(event=second)})[0] == ()
    assert build_events({TOPIC: first}, {TOPIC: Note(event=less)})[0] == (less,)


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
        ("ClusterPolicy", "ConfigAccepted"), ("ConfigMap", "ConfigAccepted"), ("ClusterPolicy", "ConfigApplied"),
        ("ConfigMap", "ConfigApplied"), ("Node", "ConfigApplied"),
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


FOUR = time_slicing(4)
REVISION = revision_of(FOUR)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"policies": (sharing_policy("any", name="nope"),)}, id="a ConfigMap that is not there"),
        pytest.param({"policies": (sharing_policy("typo", name="broken"),)}, id="an invalid key of another ConfigMap"),
        pytest.param({"policies": (sharing_policy("nokey", name="broken"),)}, id="no key of another ConfigMap"),
        pytest.param({"policies": (sharing_policy("anny"),)}, id="no key of the same ConfigMap"),
        pytest.param({"config_maps": ()}, id="the ConfigMap is deleted"),
        pytest.param({"config_maps": (config_map(any="nonsense"),)}, id="the ConfigMap is edited"),
    ],
)
def test_kept_is_not_applied(change: dict[str, Any]) -> None:
    """What nodes keep is not told as applied: not on the policy, and on no ConfigMap that it is not in."""
    maps = (config_map(any=FOUR), config_map("broken", typo=FOUR.replace("replicas", "replica")))
    good, last = settle(snapshot(node("gpu01"), node("gpu02"), policies=(sharing_policy("any"),), config_maps=maps))

    bad, then = settle(replace(good, **{**change, **_stored(good, change)}), before=last.standing)
    first = build_plan(bad, LATER, last.standing)

    assert {(item.regarding.kind.kind, item.reason) for item in first.events} == {
        ("ClusterPolicy", "ConfigRefused"), ("ConfigMap", "ConfigRefused"), ("Node", "ConfigRefused"),
    }  # fmt: skip
    assert not [topic for topic in then.standing if topic[1] == "RolledOut"]
    rolled_out = condition_of(bad, "RolledOut")
    assert (rolled_out.status, rolled_out.reason) == ("False", "NoNode")
    assert rolled_out.message == (
        f"applied on 0 of 2 GPU nodes (2 kept); gpu01, gpu02 keep any (revision {REVISION}) of ConfigMap gpu-operator/{MAP}"
    )


def _stored(good: Snapshot, change: dict[str, Any]) -> dict[str, Any]:
    """A changed policy keeps its status."""
    if "policies" not in change:
        return {}
    return {"policies": (replace(good.policies[0], spec=change["policies"][0].spec),)}


def test_a_config_map_hears_of_its_own_keys_only() -> None:
    """One node is shared by a key, one by none, one keeps what it had: each object is told what concerns it."""
    maps = (config_map(any=FOUR), config_map("fine", eight=time_slicing(8)))
    nodes = (node("gpu01"), node("gpu02"), node("gpu03"))
    good, last = settle(snapshot(*nodes, policies=(sharing_policy("any"),), config_maps=maps))

    nodes = tuple(
        replace(item, labels={**item.labels, **labels})
        for item, labels in zip(good.nodes, ({CONFIG: "eight"}, {CONFIG: "nine"}, {}), strict=True)
    )
    found, then = settle(
        replace(good, nodes=nodes, policies=(replace(good.policies[0], spec=sharing_policy(name="fine").spec),)),
        before=last.standing,
    )

    told = {topic[0].kind.kind: item.message for topic, item in then.standing.items() if topic[1] == "RolledOut"}
    eight = f"eight (revision {revision_of(time_slicing(8))}) on 1 node"
    assert told == {
        "ConfigMap": f"applied on 1 of 1 GPU node: {eight}",
        "ClusterPolicy": f"applied on 2 of 3 GPU nodes: {eight}, unshared on 1 node",
    }
    rolled_out = condition_of(found, "RolledOut")
    kept = f"gpu02 keeps any (revision {REVISION}) of ConfigMap gpu-operator/{MAP}"
    text = f"applied on 2 of 3 GPU nodes (1 kept): {eight}, unshared on 1 node; {kept}"
    assert (rolled_out.reason, rolled_out.message) == ("SomeNodes", text)


def test_switched_off() -> None:
    """A policy without the device plugin says that, whatever else it names; a warning is not taken back by it."""
    bad, last = settle(snapshot(node(), policies=(sharing_policy("any", name="nope"),)))
    off = {"devicePlugin": {"enabled": False, "config": {"name": "nope", "default": "any"}}}

    found, plan = settle(
        replace(bad, policies=(replace(bad.policies[0], spec=off),), gpu_nodes=()), before=last.standing
    )

    text = "devicePlugin.enabled of the policy is false: no node runs the device plugin"
    for type_ in ("ConfigValid", "RolledOut"):
        condition = condition_of(found, type_)
        assert (condition.status, condition.reason, condition.message) == ("True", "Disabled", text)
    assert found.policies[0].state == "ready"
    assert "ConfigAccepted" not in {item.reason for item in plan.standing.values()}


def _reporting(found: Snapshot, status: str, message: str) -> Snapshot:
    """The cluster once the agent of its node says so of its GPUs."""
    [gpu_node] = found.gpu_nodes
    devices = Condition(type=DEVICES_READY, status=status, reason="X", message=message)
    others = tuple(condition for condition in gpu_node.status.conditions if condition.type != DEVICES_READY)
    return replace(
        found, gpu_nodes=(replace(gpu_node, status=replace(gpu_node.status, conditions=(*others, devices))),)
    )


def test_sick_gpus() -> None:
    """A GPU that falls sick is told on its Node, again when more do, and so is that all are well again; never else."""
    found, last = settle(snapshot(node()))
    standing, told = last.standing, []
    for status, message in (
        ("True", "4 GPUs, driver 550"),
        ("False", "GPU 1: XID 79"),
        ("False", "GPU 1: XID 79"),
        ("False", "GPU 1: XID 79; GPU 2: XID 48"),
        ("True", "4 GPUs, driver 550"),
        ("True", "4 GPUs, driver 560"),
    ):
        plan = build_plan(_reporting(found, status, message), LATER, standing)
        told += [(str(item.regarding), item.reason, item.type, item.message) for item in plan.events]
        standing = plan.standing

    assert told == [
        ("Node gpu01", "GPUUnhealthy", EventType.WARNING, "GPU 1: XID 79"),
        ("Node gpu01", "GPUUnhealthy", EventType.WARNING, "GPU 1: XID 79; GPU 2: XID 48"),
        ("Node gpu01", "GPURecovered", EventType.NORMAL, "all GPUs can be used again: 4 GPUs, driver 550"),
    ]


def test_sick_gpus_at_a_start() -> None:
    """A controller that starts tells of sick GPUs, for nobody may have been there to tell."""
    found, _ = settle(snapshot(node()))

    plan = build_plan(_reporting(found, "False", "GPU 1: XID 79"), LATER)

    assert [item.reason for item in plan.events] == ["GPUUnhealthy"]
