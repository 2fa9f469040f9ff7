"""Others who do what we do: what stops everything, what is left to them, and what is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.conditions import Condition
from gpushare.domain.gpunode import (
    ANOTHER_PLUGIN,
    CAPACITY_SHOWN,
    REGISTERED,
    GPUNode,
    GPUNodeStatus,
    ResourceStatus,
)
from gpushare.domain.manifests import ObjectKey
from gpushare.plan.build import build_plan
from gpushare.plan.components import DEVICE_PLUGIN
from gpushare.plan.conflicts import find_others
from gpushare.plan.snapshot import Snapshot
from support.snapshots import NAMESPACE, NOW, PRESENT, SETTINGS, condition_of, node, policy, settle, snapshot

ROLE = ObjectKey(manifests.ROLE, names.SERVICE_ACCOUNT_DEVICE_PLUGIN, NAMESPACE)
COUNT = f"{names.RESOURCE_GPU}.count"
FACTS = {COUNT: "4", names.LABEL_PRODUCT: "Tesla-T4"}


def test_stops() -> None:
    """Nothing at all is written but that it is so; what was made before stays; and it goes on afterwards."""
    start, _ = settle(snapshot(node()))
    met = replace(start, nvidia_operators=frozenset({NAMESPACE}))

    after, last = settle(met)

    assert after == replace(met, policies=after.policies)
    assert last.components == ()
    conflict = condition_of(after, "Conflict")
    assert (conflict.status, conflict.reason) == ("True", "OwnedByAnother")
    assert "is at work in namespace gpu-operator too" in conflict.message
    assert after.policies[0].state == "notReady"
    assert condition_of(settle(replace(after, nvidia_operators=frozenset()))[0], "Conflict").status == "False"


def test_object_of_somebody() -> None:
    """Who has changed an object again and again may have it with all of its component; nodes get what they are to get."""
    start, _ = settle(snapshot(node()))

    plan = build_plan(replace(start, nodes=(*start.nodes, node("gpu02")), lost_objects=frozenset({ROLE})), NOW)

    assert DEVICE_PLUGIN not in {component.name for component in plan.components}
    assert plan.prune == ()
    assert [spec.name for spec in plan.gpu_nodes] == ["gpu02"]
    conditions = {condition.type: condition for condition in plan.policies[0].conditions}
    assert f"rewrites or deletes {ROLE} again and again" in conditions["Conflict"].message
    assert "kubectl rollout restart -n gpu-operator deployment gpu-sharing-operator" in conditions["Conflict"].message


def test_somebody_deletes_the_agents() -> None:
    """What is not made any more is not said to be on its way."""
    key = ObjectKey(manifests.DAEMON_SET, names.DAEMONSET_DEVICE_PLUGIN, "gpu-operator")
    start, _ = settle(snapshot(node()))

    plan = build_plan(replace(start, objects=(), lost_objects=frozenset({key})), NOW)

    [status] = plan.policies
    error = next(condition for condition in status.conditions if condition.type == "Error")
    assert f"{key} is gone, and is not made again: see Conflict" in error.message


def test_policy_of_another_operator() -> None:
    """Where NVIDIA's operator writes a policy's status from elsewhere, ours says nothing there but why it does nothing."""
    ready = Condition(type="Ready", status="True", reason="Reconciled", last_transition_time=NOW)
    theirs = replace(policy(), state="ready", namespace="nvidia", conditions=(ready,))
    met = snapshot(node(), policies=(theirs,), nvidia_operators=frozenset({"nvidia"}))

    plan = build_plan(met, NOW)

    assert (plan.components, plan.node_labels, plan.gpu_nodes) == ((), (), ())
    [status] = plan.policies
    assert (status.state, status.namespace) == ("ready", "nvidia")
    assert [(each.type, each.status) for each in status.conditions] == [("Ready", "True"), ("Conflict", "True")]
    assert "--policy" in status.conditions[1].message

    own = replace(policy("sharing"), created="2026-02-02T00:00:00Z")
    beside = replace(met, policies=(theirs, own), settings=replace(SETTINGS, policy="sharing"))
    assert build_plan(beside, NOW).components

    gone = replace(met, nvidia_operators=frozenset())
    assert settle(gone)[0].policies[0].namespace == NAMESPACE


def discovering(**labels: str) -> Snapshot:
    """A node on which node feature discovery maintains labels of NVIDIA's feature discovery, with values of its own."""
    found = replace(node(**labels), maintained=frozenset(labels), writers=dict.fromkeys(labels, "nfd-master"))
    return snapshot(found)


def test_labels_of_discovery() -> None:
    """They are left alone, the others are written, and nothing is written twice."""
    after, last = settle(discovering(**{COUNT: "8"}), labels=FACTS)

    assert (after.nodes[0].labels[COUNT], after.nodes[0].labels[names.LABEL_PRODUCT]) == ("8", "Tesla-T4")
    assert last.node_labels == ()
    conflict = condition_of(after, "Conflict")
    assert (conflict.status, conflict.reason) == ("True", "LeftToOthers")
    assert conflict.message == (
        f"node feature discovery writes {COUNT} on gpu01, as NVIDIA's gpu-feature-discovery tells it: those labels stay as they "
        "are. Delete that DaemonSet, or set gfd.enabled: false in this policy"
    )
    assert after.policies[0].state == "ready"


def test_labels_of_somebody() -> None:
    """Who has taken a label again and again may have it, and is named."""
    found = replace(node(**{names.LABEL_PRODUCT: "mine"}), writers={names.LABEL_PRODUCT: "labeller"})
    lost = {found.uid: frozenset({names.LABEL_PRODUCT})}

    after, last = settle(snapshot(found, lost_labels=lost), labels=FACTS)

    assert (after.nodes[0].labels[names.LABEL_PRODUCT], after.nodes[0].labels[PRESENT]) == ("mine", "true")
    assert last.node_labels == ()
    assert condition_of(after, "Conflict").message.startswith(f"labeller changes {names.LABEL_PRODUCT} on gpu01 again")


def test_another_plugin() -> None:
    """An agent that stands by is told of on the policy."""
    start, _ = settle(snapshot(node()))
    [gpu_node] = start.gpu_nodes
    displaced = Condition(type=REGISTERED, status="False", reason=ANOTHER_PLUGIN, last_transition_time=NOW)
    status = replace(gpu_node.status, conditions=(*gpu_node.status.conditions, displaced))

    after, _ = settle(replace(start, gpu_nodes=(replace(gpu_node, status=status),)))

    assert "another device plugin serves the same resources on gpu01" in condition_of(after, "Conflict").message


@pytest.mark.parametrize(
    ("shown", "lasts", "expected"),
    [
        pytest.param(4, True, True, id="the numbers of somebody else"),
        pytest.param(4, False, False, id="the kubelet is not that quick"),
        pytest.param(0, True, False, id="a kubelet that has lost us"),
        pytest.param(16, True, False, id="only health differs"),
    ],
)
def test_another_registrar(shown: int, lasts: bool, expected: bool) -> None:
    """Who registers the same resource from a socket of its own is known by numbers that are not ours."""
    name = names.RESOURCE_GPU
    offered = ResourceStatus(name=name, strategy="time-slicing", replicas=4, total=16, healthy=16)
    differs = Condition(type=CAPACITY_SHOWN, status="False", reason="CapacityDiffers", last_transition_time=NOW)
    status = GPUNodeStatus(resources=(offered,), conditions=(differs,) if lasts else ())
    gpu_node = GPUNode(name="gpu01", node_uid="uid-gpu01", status=status)
    found = snapshot(replace(node(), resources={name: (shown, shown)}), gpu_nodes=(gpu_node,))

    told = [text for text in find_others(found, {}) if "on gpu01 the kubelet shows other numbers" in text]

    assert bool(told) is expected
