"""The status of a policy: upstream's words, and ours besides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpushare import names
from gpushare.domain.conditions import Condition
from gpushare.plan import status
from gpushare.plan.build import build_plan
from gpushare.plan.snapshot import AgentPod, Node
from support.snapshots import LATER, NOW, condition_of, node, policy, settle, snapshot


@pytest.mark.parametrize(
    ("nodes", "reason", "message"),
    [
        pytest.param((node(),), "Reconciled", "ClusterPolicy is ready as all resources have been successfully reconciled",
                     id="GPU nodes"),
        pytest.param((Node(name="gpu01", uid="uid-gpu01", labels={names.LABEL_PRESENT: "true"}),), "Reconciled",
                     "ClusterPolicy is ready as all resources have been successfully reconciled", id="named by a person"),
        pytest.param((node(gpu=False),), "NoGPUNodes", "No GPU node found, watching for new nodes to join the cluster.",
                     id="no GPU node"),
        pytest.param((Node(name="plain"),), "NFDLabelsMissing", "No NFD labels found", id="no discovery"),
        pytest.param((), "NFDLabelsMissing", "No NFD labels found", id="no node"),
    ],
)  # fmt: skip
def test_ready(nodes: tuple[Node, ...], reason: str, message: str) -> None:
    """Three ways of being ready, word for word as scripts look for them."""
    found, _ = settle(snapshot(*nodes))

    assert (found.policies[0].state, found.policies[0].namespace) == ("ready", "gpu-operator")
    ready, error = condition_of(found, "Ready"), condition_of(found, "Error")
    assert (ready.status, ready.reason, ready.message) == ("True", reason, message)
    assert (error.status, error.reason, error.message) == ("False", "Ready", "")


def test_not_ready() -> None:
    """What is missing stands in the message, behind upstream's words."""
    found, _ = settle(snapshot(node()))

    plan = build_plan(
        replace(found, agent_pods=(AgentPod(node="gpu01", name="agent-1", trouble="CrashLoopBackOff"),)), LATER
    )

    conditions = {condition.type: condition for condition in plan.policies[0].conditions}
    assert (conditions["Ready"].status, conditions["Ready"].reason, conditions["Ready"].message) == (
        "False",
        "Error",
        "",
    )
    assert conditions["Error"].reason == "OperandNotReady"
    assert conditions["Error"].message == (
        "ClusterPolicy is not ready; states not ready: [state-device-plugin]; "
        "waiting for gpu01 (CrashLoopBackOff): kubectl logs -n gpu-operator agent-1"
    )


def test_times_and_generations() -> None:
    """A condition keeps its time while its status is the same, and tells which edit it is about."""
    found, _ = settle(snapshot(node()))

    [edited] = build_plan(replace(found, policies=(replace(found.policies[0], generation=2),)), LATER).policies

    assert {condition.observed_generation for condition in edited.conditions} == {2}
    assert {condition.last_transition_time for condition in edited.conditions} == {NOW}


def test_what_others_wrote_stays() -> None:
    """Conditions that we do not know are kept, in their place."""
    theirs = Condition(type="Theirs", status="True", reason="X", last_transition_time=NOW)

    found, _ = settle(snapshot(node(), policies=(replace(policy(), conditions=(theirs,)),)))

    assert found.policies[0].conditions[0] == theirs


def test_nothing_unmanaged() -> None:
    """A policy that asks for nothing else leaves nothing to say."""
    off = {name: {"enabled": False} for name in ("driver", "toolkit", "dcgm", "dcgmExporter", "migManager", "cdi")}

    found, _ = settle(snapshot(policies=(policy(**off),)))

    condition = condition_of(found, status.UNMANAGED)
    assert (condition.status, condition.message) == ("False", "")


def test_to_json() -> None:
    """State and conditions are one patch."""
    [written] = build_plan(snapshot(), NOW).policies

    body = written.to_json()

    assert (body["state"], body["namespace"]) == ("notReady", "gpu-operator")
    assert [condition["type"] for condition in body["conditions"]] == [
        status.READY, status.ERROR, status.CONFIG_VALID, status.ROLLED_OUT, status.CONFLICT, status.UNMANAGED,
    ]  # fmt: skip
