"""Nodes whose discovery labels come, blink and go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpushare import names
from gpushare.domain.conditions import Condition
from gpushare.domain.gpunode import DISCOVERED, GPUNode, GPUNodeStatus
from gpushare.plan import discovery
from gpushare.plan.build import build_plan
from gpushare.plan.snapshot import Node, Snapshot
from support.snapshots import (
    NOW,
    PCI,
    PRESENT,
    carry_out,
    config_map,
    node,
    settle,
    sharing_policy,
    snapshot,
    time_slicing,
)

PLUGIN = names.LABEL_DEPLOY_DEVICE_PLUGIN
FACTS = {f"{names.RESOURCE_GPU}.count": "4"}
SOON = "2026-11-29T12:09:59Z"
LATE = "2026-11-29T12:10:00Z"
"""Ten minutes after NOW: what is granted by default is over."""


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        pytest.param("pci-10de.present", True, id="vendor"),
        pytest.param("pci-0302_10de.present", True, id="3D controller"),
        pytest.param("pci-0300_10de.present", True, id="display controller"),
        pytest.param("pci-0302_10de_20b5.present", True, id="with the device"),
        pytest.param("pci-0302_10de_20b5_10de_1463.present", True, id="with the subsystem"),
        pytest.param("pci-10de_20b5.present", True, id="without the class"),
        pytest.param("pci-0680_10de.present", False, id="NVSwitch"),
        pytest.param("pci-0403_10de.present", False, id="sound of a graphics card"),
        pytest.param("pci-0200_15b3_1017_10de.present", False, id="another vendor"),
        pytest.param("pci-10de.sriov.capable", False, id="another feature"),
    ],
)
def test_features(key: str, expected: bool) -> None:
    """Every form in which node feature discovery may be told to name a device, and no other device of NVIDIA's."""
    assert discovery.is_feature(names.PREFIX_NFD + key) is expected


def running(**labels: str) -> Snapshot:
    """A node that is served, with a configuration of its own."""
    maps = (config_map(any=time_slicing(4)),)
    return settle(snapshot(node(**labels), policies=(sharing_policy("any"),), config_maps=maps), labels=FACTS)[0]


def blind(found: Snapshot, **others: str) -> Snapshot:
    """The same without the label of discovery."""
    [one] = found.nodes
    labels = {key: value for key, value in one.labels.items() if key != PCI}
    return replace(found, nodes=(replace(one, labels={**labels, **others}),))


def seen(found: Snapshot) -> Snapshot:
    [one] = found.nodes
    return replace(found, nodes=(replace(one, labels={**one.labels, PCI: "true"}),))


def after(found: Snapshot, now: str) -> Snapshot:
    """All passes of one moment."""
    for _ in range(3):
        found = carry_out(found, build_plan(found, now), labels=FACTS)
    return found


def lost_since(found: Snapshot) -> list[str]:
    conditions = [condition for gpu_node in found.gpu_nodes for condition in gpu_node.status.conditions]
    return [condition.last_transition_time for condition in conditions if condition.type == DISCOVERED]


def test_blinking() -> None:
    """A label that is back soon changes nothing: no label, no configuration, and nothing is written on the Node."""
    start = running()

    plan = build_plan(blind(start), NOW)
    dark = after(blind(start), NOW)
    assert plan.node_labels == ()
    assert plan.gpu_node_removals == ()
    assert plan.wake_seconds == 600
    assert lost_since(dark) == [NOW]
    assert dark.gpu_nodes[0].config == start.gpu_nodes[0].config

    assert build_plan(dark, SOON).wake_seconds == 1
    back = after(seen(dark), SOON)
    assert lost_since(back) == []
    assert back.nodes == start.nodes
    assert build_plan(back, SOON).wake_seconds is None


def test_gone() -> None:
    """After that time the node is none with GPUs; a controller that starts meanwhile goes on counting."""
    dark = after(blind(running()), NOW)

    gone = after(dark, LATE)

    assert gone.nodes[0].labels == {PRESENT: "false"}
    assert gone.gpu_nodes == ()
    assert after(seen(gone), LATE).nodes[0].labels[PLUGIN] == "true"


def stored(*conditions: Condition, uid: str = "uid-gpu01") -> GPUNode:
    return GPUNode(name="gpu01", node_uid=uid, status=GPUNodeStatus(conditions=conditions))


LOST = Condition(type=DISCOVERED, status="False", reason="LabelsMissing", last_transition_time=NOW)
OURS: dict[str, Any] = {"owned": (PRESENT,), PRESENT: "true"}


@pytest.mark.parametrize(
    ("found", "gpu_node", "expected"),
    [
        pytest.param(node(), None, (True, False, False), id="discovered"),
        pytest.param(node(gpu=False, **OURS), stored(), (True, True, False), id="just lost"),
        pytest.param(node(gpu=False, **OURS), stored(LOST), (True, True, False), id="lost a while ago"),
        pytest.param(node(**OURS), stored(LOST), (True, False, True), id="back"),
        pytest.param(node(**{PRESENT: "false"}), stored(), (True, False, True), id="back after all was taken away"),
        pytest.param(node(gpu=False, **OURS), None, (False, False, False), id="nothing runs there"),
        pytest.param(node(gpu=False, **OURS), stored(uid="old"), (False, False, False), id="another node of that name"),
        pytest.param(node(gpu=False), stored(), (False, False, False), id="a person took their own label away"),
        pytest.param(node(gpu=False, **{PRESENT: "false"}), stored(), (True, True, False), id="NVIDIA's operator says no"),
        pytest.param(
            replace(node(gpu=False, **{PRESENT: "false"}), writers={PRESENT: "kubectl-label"}), stored(),
            (False, False, False), id="a person says no",
        ),
    ],
)  # fmt: skip
def test_look(found: Node, gpu_node: GPUNode | None, expected: tuple[bool, bool, bool]) -> None:
    """Only what a program lost is waited for; what a person says counts at once."""
    sight = discovery.look(found, gpu_node, SOON, grace_seconds=600)

    assert (sight.present, sight.missing, sight.returned) == expected


def test_what_others_made_of_it_is_not_overruled() -> None:
    """NVIDIA's operator says `gpu.present=false` at once and takes its labels away: what the agent needs is put back, once."""
    [one] = running().nodes
    writers = {PRESENT: names.MANAGER_NVIDIA_OPERATOR}
    wiped = replace(one, labels={PRESENT: "false", **FACTS}, owned=frozenset(FACTS), writers=writers)
    lost = replace(running(), nodes=(wiped,))

    [change] = build_plan(lost, NOW).node_labels
    dark = after(lost, NOW)

    assert not change.is_known, "that is no fight"
    assert (dark.nodes[0].labels[PRESENT], dark.nodes[0].labels[PLUGIN]) == ("false", "true")
    assert build_plan(dark, SOON).node_labels == ()
