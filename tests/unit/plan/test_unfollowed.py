"""Policies that cannot be followed, while agents come and go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.conditions import Condition
from gpushare.domain.gpunode import AGENT_READY, CONFIG_ASSIGNED
from gpushare.domain.manifests import ObjectKey
from gpushare.plan.build import Plan, build_plan
from gpushare.plan.snapshot import AgentPod, LiveObject, Snapshot
from support.snapshots import LATER, NAMESPACE, carry_out, node, policy, settle, snapshot

DAEMONSET = ObjectKey(manifests.DAEMON_SET, names.DAEMONSET_DEVICE_PLUGIN, NAMESPACE)
THEIRS = LiveObject(key=DAEMONSET, uid="theirs", controller="uid-theirs", controller_name="ClusterPolicy theirs")
CRASHING = (AgentPod(node="gpu01", name="agent-1", trouble="CrashLoopBackOff"),)
READY = (AgentPod(node="gpu01", name="theirs-1", ready=True),)
NO_SPEC = (replace(policy("successor"), spec=None),)


def at_work() -> Snapshot:
    """One node that was served well, by a policy that could be followed."""
    return settle(snapshot(node()))[0]


def without_daemonset(found: Snapshot) -> tuple[LiveObject, ...]:
    return tuple(item for item in found.objects if item.key != DAEMONSET)


def agent_ready(plan: Plan) -> Condition:
    """What is written of the one node."""
    [written] = plan.gpu_node_conditions
    return next(condition for condition in written.conditions if condition.type == AGENT_READY)


def message_of(plan: Plan) -> str:
    return next(condition.message for condition in plan.policies[0].conditions if condition.type == "Error")


@pytest.mark.parametrize(
    "why",
    [
        pytest.param({"policies": NO_SPEC}, id="no spec"),
        pytest.param({"gpu_clusters": ("gpu-cluster",)}, id="conflict"),
        pytest.param({"policies": (policy(cdi={"nriPluginEnabled": True, "enabled": False}),)}, id="contradiction"),
    ],
)
def test_agents_are_followed(why: dict[str, Any]) -> None:
    """`AgentReady` goes with the pods, and nothing else of the node is touched."""
    found = replace(at_work(), **why)

    bad = build_plan(replace(found, agent_pods=CRASHING), LATER)
    [written] = bad.gpu_node_conditions
    told = {condition.type: condition for condition in written.conditions}
    assert told.keys() == {CONFIG_ASSIGNED, AGENT_READY}
    assert told[CONFIG_ASSIGNED] in found.gpu_nodes[0].status.conditions
    assert (told[AGENT_READY].status, told[AGENT_READY].last_transition_time) == ("False", LATER)
    assert "CrashLoopBackOff" in told[AGENT_READY].message
    assert bad.components == bad.gpu_nodes == bad.node_labels == bad.prune == bad.gpu_node_removals == ()

    after = carry_out(replace(found, agent_pods=CRASHING), bad)
    assert build_plan(replace(after, agent_pods=CRASHING), LATER).gpu_node_conditions == ()
    assert agent_ready(build_plan(after, LATER)).status == "True"  # its pods are ready


def test_daemonset_went_with_its_owner() -> None:
    """A successor without a spec keeps quiet about nothing: agents are gone, and the policy says what of."""
    found = at_work()

    plan = build_plan(replace(found, policies=NO_SPEC, objects=without_daemonset(found), agent_pods=()), LATER)

    assert message_of(plan) == (
        "spec: is missing, so nothing is changed; apply the whole policy again (`{}` is enough for each part of it); "
        f"{DAEMONSET} is gone, and no agent runs until this policy can be followed"
    )
    assert agent_ready(plan).status == "False"


def test_nothing_was_there() -> None:
    """Where no node was ever served, no DaemonSet is missed."""
    assert "is gone" not in message_of(build_plan(snapshot(node(), policies=NO_SPEC), LATER))


def test_pods_of_somebody_else() -> None:
    """Where another operator has taken the DaemonSet over, its pods are no agents."""
    found = at_work()

    plan = build_plan(replace(found, objects=(*without_daemonset(found), THEIRS), agent_pods=READY), LATER)

    assert agent_ready(plan).status == "False"


@pytest.mark.parametrize(
    "nodes",
    [pytest.param((), id="gone"), pytest.param((replace(node(), uid="another"),), id="replaced")],
)
def test_node_that_went(nodes: tuple[Any, ...]) -> None:
    """A GPUNode whose Node is gone is about to go with it."""
    found = replace(at_work(), policies=NO_SPEC, nodes=nodes, agent_pods=())

    assert build_plan(found, LATER).gpu_node_conditions == ()


def test_kept_away_meanwhile() -> None:
    """An opt-out counts too: the DaemonSet leaves the node, whatever becomes of the policy."""
    away = node("gpu01", **{names.LABEL_DEPLOY_DEVICE_PLUGIN: "false"})

    plan = build_plan(replace(at_work(), policies=NO_SPEC, nodes=(away,), agent_pods=()), LATER)

    assert agent_ready(plan).reason == "NotDeployed"
