"""How far nodes and DaemonSets are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpushare.domain import manifests
from gpushare.domain.conditions import Condition
from gpushare.domain.gpunode import CONFIG_APPLIED, Config, ConfigReason, ConfigSource, GPUNode, GPUNodeStatus
from gpushare.domain.manifests import ObjectKey
from gpushare.errors import Problem
from gpushare.plan.agents import Agent
from gpushare.plan.build import build_plan
from gpushare.plan.rollouts import Phase, Progress, describe_daemonset, progress_of, summarise
from gpushare.plan.snapshot import Rollout
from support.snapshots import LATER, NOW, condition_of, config_map, node, settle, sharing_policy, snapshot, time_slicing

CONFIG = Config(
    reason=ConfigReason.DEFAULT,
    source=ConfigSource(namespace="gpu-operator", name="m", key="any"),
    content="version: v1",
)
READY = Agent()
AWAY = Agent(text="agent not ready")
PROBLEM = Problem(path="sharing.timeSlicing.resources[0]", message="the node has no nvidia.com/mig-7g.40gb")


def reported(
    applied: str | None = None,
    *,
    revision: str = CONFIG.revision,
    seen: int | None = 2,
    problems: tuple[Problem, ...] = (),
) -> GPUNode:
    conditions = (
        (
            Condition(
                type=CONFIG_APPLIED, status=applied, reason="x", message="it does not fit", observed_generation=seen
            ),
        )
        if applied
        else ()
    )
    status = GPUNodeStatus(applied_revision=revision, conditions=conditions, problems=problems)
    return GPUNode(name="gpu01", config=CONFIG, generation=2, status=status)


@pytest.mark.parametrize(
    ("gpu_node", "agent", "phase", "text"),
    [
        pytest.param(None, AWAY, Phase.WAITING, "agent not ready", id="no agent"),
        pytest.param(None, READY, Phase.WAITING, "", id="nothing given yet"),
        pytest.param(replace(reported("True"), config=Config()), READY, Phase.WAITING, "", id="something else given"),
        pytest.param(reported(), READY, Phase.WAITING, "", id="nothing said yet"),
        pytest.param(reported("True", seen=1), READY, Phase.WAITING, "", id="said of an earlier generation"),
        pytest.param(reported("True", revision="0"), READY, Phase.WAITING, "", id="said of another revision"),
        pytest.param(reported("True"), READY, Phase.APPLIED, "", id="applied"),
        pytest.param(reported("True", seen=None), READY, Phase.WAITING, "", id="what ran before the agent was restarted"),
        pytest.param(reported("False", seen=None), READY, Phase.WAITING, "", id="nothing seen yet"),
        pytest.param(reported("False", seen=1), READY, Phase.WAITING, "", id="an earlier one was refused"),
        pytest.param(reported("False"), READY, Phase.REFUSED, "it does not fit", id="refused"),
        pytest.param(reported("False", problems=(PROBLEM,)), READY, Phase.REFUSED, str(PROBLEM), id="refused with reasons"),
        pytest.param(reported("True"), AWAY, Phase.WAITING, "agent not ready", id="the agent went"),
    ],
)  # fmt: skip
def test_progress(gpu_node: GPUNode | None, agent: Agent, phase: Phase, text: str) -> None:
    """One node on its way."""
    progress = progress_of(CONFIG, gpu_node, agent)

    assert (phase, text) == (progress.phase, progress.text)


def test_kept_is_not_applied() -> None:
    """A node that runs what it had before has not applied what is named for it now; all else is the same."""
    assert progress_of(CONFIG, reported("True"), READY, kept=True).phase is Phase.KEPT
    assert progress_of(CONFIG, reported("False"), READY, kept=True).phase is Phase.REFUSED
    assert progress_of(CONFIG, reported("True"), AWAY, kept=True).phase is Phase.WAITING


def test_warnings_come_along() -> None:
    """What an agent says of a configuration that it applied is a warning."""
    assert progress_of(CONFIG, reported("True", problems=(PROBLEM,)), READY).warnings == (str(PROBLEM),)


def test_summary() -> None:
    """Counts, and a few names of those that are not there yet."""
    nodes = {f"gpu{number}": Progress(phase=Phase.APPLIED, config=CONFIG) for number in range(3)}
    nodes["gpu3"] = Progress(phase=Phase.APPLIED, config=Config())
    nodes["gpu4"] = Progress(phase=Phase.REFUSED, config=CONFIG, text="no such device")
    nodes["gpu5"] = Progress(phase=Phase.WAITING, config=CONFIG)
    for name, remedy in (("gpu6", "kubectl logs six"), ("gpu61", "kubectl logs another")):
        nodes[name] = Progress(phase=Phase.WAITING, config=CONFIG, text="CrashLoopBackOff", remedy=remedy)
    nodes["gpu7"] = nodes["gpu8"] = Progress(phase=Phase.KEPT, config=CONFIG)
    nodes["gpu9"] = Progress(phase=Phase.KEPT, config=Config())

    assert summarise(nodes).text == (
        "applied on 4 of 11 GPU nodes (1 refused, 3 kept, 3 waiting): "
        f"any (revision {CONFIG.revision}) on 3 nodes, unshared on 1 node; "
        'gpu4 cannot run "any" and keeps what was there: no such device; '
        f"gpu7, gpu8 keep any (revision {CONFIG.revision}) of ConfigMap gpu-operator/m; gpu9 stays unshared; "
        "waiting for gpu5; waiting for gpu6, gpu61 (CrashLoopBackOff): kubectl logs six"
    )
    assert summarise(nodes).news == 'gpu4 cannot run "any" and keeps what was there: no such device'
    del nodes["gpu4"]
    assert summarise(nodes).news == (
        f"applied on 4 of 10 GPU nodes: any (revision {CONFIG.revision}) on 3 nodes, unshared on 1 node"
    )
    assert summarise({}).text.startswith(
        "no node is there to run a configuration: none has one of the labels feature.node"
    )


def test_refused_without_a_configuration() -> None:
    """Nobody has named one, so what a node refuses is the policy's."""
    refused = Progress(phase=Phase.REFUSED, config=Config(mig_strategy="single"), text="no such layout")

    assert summarise({"gpu1": refused}).news == "gpu1 cannot follow the policy and keeps what was there: no such layout"


KEY = ObjectKey(manifests.DAEMON_SET, "agent", "ns")


@pytest.mark.parametrize(
    ("rollout", "expected", "text"),
    [
        pytest.param(None, 0, "DaemonSet ns/agent is being created", id="not there"),
        pytest.param(Rollout(generation=2, observed=1), 0, "DaemonSet ns/agent is being changed", id="not seen yet"),
        pytest.param(Rollout(generation=1, observed=1), 0, "", id="nothing to run on"),
        pytest.param(Rollout(generation=1, observed=1), 1, "DaemonSet ns/agent is scheduled on none of 1 GPU node; look at their"
                     " taints", id="kept away"),
        pytest.param(Rollout(generation=1, observed=1, desired=2, updated=1, available=2), 2,
                     "DaemonSet ns/agent: 1 of 2 pods up to date, 2 available", id="rolling"),
        pytest.param(Rollout(generation=1, observed=1, desired=2, updated=2, available=1, unavailable=1), 2,
                     "DaemonSet ns/agent: 2 of 2 pods up to date, 1 available", id="one is down"),
        pytest.param(Rollout(generation=1, observed=1, desired=2, unavailable=2), 2,
                     "DaemonSet ns/agent: 0 of 2 pods up to date, 0 available (`kubectl describe daemonset -n ns agent` tells "
                     "what keeps them from being made)", id="nothing is let in"),
        pytest.param(Rollout(generation=1, observed=1, desired=2, available=2, on_delete=True), 2,
                     "DaemonSet ns/agent: 0 of 2 pods up to date, 2 available; updateStrategy is OnDelete, so the others wait "
                     "until they are deleted (`kubectl delete pods -n ns -l app=agent`)", id="somebody has to delete pods"),
        pytest.param(Rollout(generation=1, observed=1, desired=2, updated=2, available=1, unavailable=1, on_delete=True), 2,
                     "DaemonSet ns/agent: 2 of 2 pods up to date, 1 available", id="deleted, and one is down"),
        pytest.param(Rollout(generation=1, observed=1, desired=2, updated=2, available=2), 2, "", id="done"),
    ],
)  # fmt: skip
def test_daemonset(rollout: Rollout | None, expected: int, text: str) -> None:
    """Numbers count only once they are about the newest generation."""
    assert text == describe_daemonset(KEY, rollout, expected)


def test_refusing_node_is_told_everywhere() -> None:
    """A configuration that does not fit one node: the policy, an Event on it, the ConfigMap and the Node say so."""
    good, last = settle(
        snapshot(
            node(), policies=(sharing_policy("any"),), config_maps=(config_map("time-slicing", any=time_slicing(4)),)
        )
    )
    [gpu_node] = good.gpu_nodes
    refusal = Condition(
        type=CONFIG_APPLIED, status="False", reason="No", observed_generation=gpu_node.generation, last_transition_time=NOW
    )  # fmt: skip
    kept = [condition for condition in gpu_node.status.conditions if condition.type != CONFIG_APPLIED]
    status = replace(gpu_node.status, conditions=(*kept, refusal), problems=(PROBLEM,))

    plan = build_plan(replace(good, gpu_nodes=(replace(gpu_node, status=status),)), LATER, last.standing)

    conditions = {condition.type: condition for condition in plan.policies[0].conditions}
    assert (conditions["RolledOut"].reason, plan.policies[0].state) == ("Refused", "notReady")
    assert conditions["ConfigValid"] == condition_of(good, "ConfigValid")
    assert str(PROBLEM) in conditions["Error"].message
    assert [(event.regarding.kind.kind, event.reason) for event in plan.events] == [
        ("ClusterPolicy", "ConfigNotApplied"), ("ConfigMap", "ConfigNotApplied"), ("Node", "ConfigNotApplied"),
    ]  # fmt: skip
