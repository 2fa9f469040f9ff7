"""Plans as a whole: one truth for one cluster, and nothing to do once it is done."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.manifests import ObjectKey
from gpushare.plan.build import build_plan
from gpushare.plan.components import DEVICE_PLUGIN, keys_of
from gpushare.plan.snapshot import LiveObject, Node, Policy, Snapshot
from support.snapshots import (
    LATER,
    NOW,
    PCI,
    condition_of,
    config_map,
    node,
    policy,
    settle,
    sharing_policy,
    snapshot,
    time_slicing,
)  # fmt: skip

MAPS = (config_map(any=time_slicing(4), other=time_slicing(8), broken="sharing: ["), config_map("unrelated"))
VALUES = st.sampled_from(["any", "other", "broken", "no-such-key", ""])
NODES = st.builds(
    lambda number, gpu, label, out: node(
        f"gpu{number:02}", gpu=gpu, config=label, **({names.LABEL_DEPLOY_OPERANDS: "false"} if out else {})
    ),
    st.integers(0, 20), st.booleans(), VALUES, st.booleans(),
)  # fmt: skip
POLICIES = st.sampled_from([
    policy(), sharing_policy("any"), sharing_policy(), sharing_policy("broken"), sharing_policy(name="no-such-map"),
    policy(devicePlugin={"enabled": False}), policy(gfd={"enabled": False}), replace(policy(), spec=None),
    policy(devicePlugin={"image": "x", "version": "1"}), policy("older", created="2025-01-01T00:00:00Z"),
])  # fmt: skip
CLUSTERS = st.builds(
    lambda nodes, policies: snapshot(*nodes, policies=tuple(policies), config_maps=MAPS),
    st.lists(NODES, max_size=5, unique_by=lambda item: item.name),
    st.lists(POLICIES, max_size=2, unique_by=lambda item: item.name),
)


@settings(max_examples=60, deadline=None)
@given(CLUSTERS, st.randoms(use_true_random=False))
def test_order_means_nothing(found: Snapshot, shuffler: object) -> None:
    """However the watches happened to deliver things, the plan is the same."""
    settled, _ = settle(found)
    shuffled = {
        name: tuple(shuffler.sample(getattr(settled, name), len(getattr(settled, name))))
        for name in ("policies", "config_maps", "nodes", "gpu_nodes", "objects", "agent_pods")
    }

    assert build_plan(settled, NOW) == build_plan(replace(settled, **shuffled), NOW)


@settings(max_examples=60, deadline=None)
@given(CLUSTERS)
def test_done_is_done(found: Snapshot) -> None:
    """After a few passes nothing is left to write, whatever was there at first, and a restart has nothing to say."""
    settled, _ = settle(found, labels={names.LABEL_PRODUCT: "Tesla-T4"})

    again = build_plan(settled, LATER)

    assert (again.gpu_nodes, again.gpu_node_conditions, again.node_labels) == ((), (), ())
    assert (again.prune, again.gpu_node_removals, again.policies) == ((), (), ())
    assert again.events == ()


@settings(max_examples=40, deadline=None)
@given(CLUSTERS, POLICIES)
def test_a_policy_without_sense_changes_nothing(found: Snapshot, active: Policy) -> None:
    """A policy that loses its spec, or gets one that cannot be read, leaves every node and object as it is."""
    settled, last = settle(replace(found, policies=(active,)), labels={names.LABEL_PRODUCT: "Tesla-T4"})

    for spec in (None, {}, {"devicePlugin": None}, {"devicePlugin": {"enabled": "perhaps"}}):
        broken = build_plan(replace(settled, policies=(replace(settled.policies[0], spec=spec),)), LATER, last.standing)

        assert broken.components == broken.gpu_nodes == broken.gpu_node_conditions == broken.node_labels == ()
        assert broken.prune == broken.gpu_node_removals == ()


def test_first_labelling_is_one_write_a_node() -> None:
    """A new node is written once, whatever will be found on it later."""
    plan = build_plan(snapshot(*(node(f"gpu{number:02}") for number in range(20))), NOW)

    assert len({change.name for change in plan.node_labels}) == len(plan.node_labels) == 20
    assert not any(change.force for change in plan.node_labels)


def test_missing_spec_is_told_and_corrected() -> None:
    """The policy says what is missing, and goes on as soon as it is there."""
    good, last = settle(snapshot(node(), policies=(sharing_policy("any"),), config_maps=MAPS))

    bare, last = settle(replace(good, policies=(replace(good.policies[0], spec=None),)), before=last.standing)
    error = condition_of(bare, "Error")
    assert (bare.policies[0].state, error.reason) == ("notReady", "ReconcileFailed")
    assert error.message.startswith("spec: is missing, so nothing is changed")

    back = build_plan(
        replace(bare, policies=(replace(bare.policies[0], spec=good.policies[0].spec),)), LATER, last.standing
    )
    assert back.policies[0].state == "ready"
    assert [event.reason for event in back.events] == ["Reconciled"]


def test_no_policy_removes_what_is_ours() -> None:
    """Workloads first, then what they ran with; the controller's own objects and those of others stay."""
    settled, last = settle(snapshot(node()))
    own = LiveObject(
        key=ObjectKey(manifests.SERVICE_ACCOUNT, names.CONTROLLER, "gpu-operator"), managed=True, component="controller"
    )
    foreign = LiveObject(key=ObjectKey(manifests.DAEMON_SET, "other", "gpu-operator"))

    plan = build_plan(replace(settled, policies=(), objects=(*settled.objects, own, foreign)), LATER)

    assert {item.key for item in plan.prune} == frozenset().union(*map(keys_of, last.components))
    assert plan.prune[0].key.kind == manifests.DAEMON_SET
    assert [removal.uid for removal in plan.gpu_node_removals] == ["gpunode-gpu01"]
    assert [change.labels for change in plan.node_labels] == [{}]


@pytest.mark.parametrize(
    ("other", "text"),
    [
        pytest.param({"gpu_clusters": ("gpu-cluster",)}, "GPUCluster gpu-cluster exists", id="GPUCluster"),
        pytest.param(
            {
                "objects": (
                    LiveObject(
                        key=ObjectKey(manifests.DAEMON_SET, names.DAEMONSET_DEVICE_PLUGIN, "gpu-operator"),
                        controller="uid-theirs", controller_name="ClusterPolicy theirs",
                    ),
                )
            },
            "is controlled by ClusterPolicy theirs",
            id="their DaemonSet",
        ),
    ],
)  # fmt: skip
def test_conflict(other: dict[str, object], text: str) -> None:
    """Where another operator is in charge, nothing is written but why."""
    plan = build_plan(replace(snapshot(node()), **other), NOW)

    assert plan.components == plan.gpu_nodes == plan.node_labels == plan.prune == ()
    conditions = {condition.type: condition for condition in plan.policies[0].conditions}
    assert conditions["Conflict"].status == "True"
    assert text in conditions["Error"].message
    assert {event.reason for event in plan.events} == {"Conflict", "ReconcileFailed"}


def test_take_over_of_what_was_left_behind() -> None:
    """A DaemonSet that nobody controls any more, or the same policy, is no conflict."""
    key = ObjectKey(manifests.DAEMON_SET, names.DAEMONSET_DEVICE_PLUGIN, "gpu-operator")
    for controller in ("", "uid-cluster-policy"):
        plan = build_plan(snapshot(node(), objects=(LiveObject(key=key, controller=controller),)), NOW)

        assert plan.components[0].name == DEVICE_PLUGIN


def test_5000_nodes_keep_one_text() -> None:
    """A plan for a big cluster shares what nodes have in common: one text, not 5,000."""
    nodes: list[Node] = [
        Node(name=f"gpu{number:04}", uid=f"u{number}", labels={PCI: "true"}, discovered=True) for number in range(5000)
    ]

    plan = build_plan(snapshot(*nodes, policies=(sharing_policy("any"),), config_maps=MAPS), NOW)

    assert len(plan.gpu_nodes) == 5000
    assert len({id(spec.config.content) for spec in plan.gpu_nodes}) == 1
