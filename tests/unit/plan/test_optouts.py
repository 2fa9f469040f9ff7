"""What people keep away from a node, whoever takes their labels off it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gpushare import names
from gpushare.plan.build import build_plan
from gpushare.plan.snapshot import Snapshot
from support.snapshots import NOW, PCI, PRESENT, carry_out, node, settle, snapshot

LATE = "2026-11-29T13:00:00Z"
PLUGIN = names.LABEL_DEPLOY_DEVICE_PLUGIN
DCGM = f"{names.LABEL_DEPLOY_PREFIX}dcgm"


def opted_out() -> Snapshot:
    """A person has written `false`, and we have seen it."""
    return settle(relabelled(settle(snapshot(node()))[0], **{PLUGIN: "false"}))[0]


def relabelled(found: Snapshot, **changes: str | None) -> Snapshot:
    """Somebody else writes labels, or removes them."""
    [one] = found.nodes
    labels = {key: value for key, value in {**one.labels, **changes}.items() if value is not None}
    return replace(found, nodes=(replace(one, labels=labels, owned=one.owned - changes.keys()),))


def passed(found: Snapshot, now: str = NOW) -> Snapshot:
    for _ in range(4):
        found = carry_out(found, build_plan(found, now))
    return found


def labels_of(found: Snapshot) -> Mapping[str, str]:
    return found.nodes[0].labels


def test_remembered_and_forgotten() -> None:
    """One annotation while it lasts; who removes the label, or writes `true`, has changed their mind."""
    out = opted_out()
    assert out.nodes[0].opted_out == {"device-plugin"}
    assert PLUGIN not in out.nodes[0].owned

    back = passed(relabelled(out, **{PLUGIN: None}))
    assert (labels_of(back)[PLUGIN], back.nodes[0].opted_out) == ("true", frozenset())

    back = passed(relabelled(out, **{PLUGIN: "true"}))
    assert (labels_of(back)[PLUGIN], back.nodes[0].opted_out) == ("true", frozenset())


def test_blinking() -> None:
    """NVIDIA's operator takes all labels away while discovery blinks, and says `true` afterwards: the person's word counts."""
    everything = dict.fromkeys(key for key in labels_of(opted_out()) if key.startswith(names.LABEL_DEPLOY_PREFIX))
    dark = passed(relabelled(opted_out(), **{PCI: None, PRESENT: "false", **everything}))
    assert (labels_of(dark)[PLUGIN], labels_of(dark)[DCGM]) == ("false", "true")

    back = passed(relabelled(dark, **{PCI: "true", PRESENT: "true", **dict.fromkeys(everything, "true")}))
    assert (labels_of(back)[PLUGIN], labels_of(back)[DCGM]) == ("false", "true")

    changed = passed(relabelled(back, **{PLUGIN: None}))
    assert labels_of(changed)[PLUGIN] == "true"


def test_gone_and_back() -> None:
    """Also after so long a time that the node was none with GPUs."""
    gone = passed(relabelled(opted_out(), **{PCI: None, PLUGIN: None, PRESENT: "false"}), NOW)
    gone = passed(gone, LATE)
    assert labels_of(gone) == {PRESENT: "false"}

    back = passed(relabelled(gone, **{PCI: "true"}), LATE)
    assert (labels_of(back)[PLUGIN], labels_of(back)[DCGM]) == ("false", "true")


def test_changed_mind_in_the_dark() -> None:
    """Where nobody else labels the node, a label that goes while discovery blinks was removed by a person."""
    dark = passed(relabelled(opted_out(), **{PCI: None}))
    assert dark.nodes[0].opted_out == {"device-plugin"}

    changed = passed(relabelled(dark, **{PLUGIN: None}))
    assert (labels_of(changed)[PLUGIN], changed.nodes[0].opted_out) == ("true", frozenset())


def test_everything_at_once() -> None:
    """`operands=false` takes what an operator left behind that is gone too, and forgets nothing that was said before."""
    out = relabelled(opted_out(), **{DCGM: "true", names.LABEL_DEPLOY_OPERANDS: "false"})
    left = relabelled(settle(snapshot(node()))[0], **{PLUGIN: "true", names.LABEL_DEPLOY_OPERANDS: "false"})

    assert {key for key in labels_of(passed(left)) if key.startswith(names.LABEL_DEPLOY_PREFIX)} == {
        names.LABEL_DEPLOY_OPERANDS
    }
    assert passed(out).nodes[0].opted_out == {"device-plugin"}
    assert labels_of(passed(relabelled(passed(left), **{names.LABEL_DEPLOY_OPERANDS: None})))[PLUGIN] == "true"
    assert labels_of(passed(relabelled(passed(out), **{names.LABEL_DEPLOY_OPERANDS: None})))[PLUGIN] == "false"


def test_goes_with_the_policy() -> None:
    """Our note goes, the person's label stays."""
    after = passed(replace(opted_out(), policies=()))

    assert (after.nodes[0].opted_out, labels_of(after)) == (frozenset(), {PCI: "true", PLUGIN: "false"})
