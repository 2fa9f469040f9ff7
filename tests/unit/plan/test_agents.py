"""Agents that are at work, that start, and that are in trouble."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpushare import names
from gpushare.domain.conditions import Condition
from gpushare.domain.gpunode import AGENT_READY, CONFIG_ASSIGNED, DEVICES_READY, REGISTERED, GPUNode, GPUNodeStatus
from gpushare.plan.agents import Agent, agent_of, pods_by_node
from gpushare.plan.build import build_plan
from gpushare.plan.snapshot import AgentPod
from support.snapshots import LATER, NAMESPACE, condition_of, node, settle, snapshot

SILENT = GPUNode(name="gpu01")


def telling(type_: str, message: str) -> GPUNode:
    condition = Condition(type=type_, status="False", reason="Bad", message=message)
    return replace(SILENT, status=GPUNodeStatus(conditions=(condition,)))


def pod(trouble: str = "", *, ready: bool = False, name: str = "agent-1") -> AgentPod:
    return AgentPod(node="gpu01", name=name, ready=ready, trouble=trouble)


DESCRIBE = (
    "kubectl describe pods -n gpu-operator -l app=nvidia-device-plugin-daemonset --field-selector spec.nodeName=gpu01"
)


@pytest.mark.parametrize(
    ("found", "gpu_node", "expected"),
    [
        pytest.param(None, SILENT, Agent(text="agent not ready", remedy=DESCRIBE), id="no pod"),
        pytest.param(pod(ready=True), telling(REGISTERED, "x"), Agent(), id="at work"),
        pytest.param(pod(), None, Agent(text="agent not ready", remedy=DESCRIBE), id="starting"),
        pytest.param(
            pod("CrashLoopBackOff"), telling(DEVICES_READY, "before it crashed"),
            Agent(text="CrashLoopBackOff", remedy="kubectl logs -n gpu-operator agent-1"), id="crashing",
        ),
        pytest.param(pod("ImagePullBackOff"), SILENT, Agent(text="ImagePullBackOff", remedy=DESCRIBE), id="no image"),
        pytest.param(pod(), telling(DEVICES_READY, "no driver"), Agent(text="no driver", remedy=DESCRIBE), id="no driver"),
        pytest.param(pod(), telling(REGISTERED, "no kubelet"), Agent(text="no kubelet", remedy=DESCRIBE), id="no kubelet"),
        pytest.param(pod(), telling(CONFIG_ASSIGNED, "x"), Agent(text="agent not ready", remedy=DESCRIBE), id="ours"),
    ],
)  # fmt: skip
def test_agent(found: AgentPod | None, gpu_node: GPUNode | None, expected: Agent) -> None:
    """The pod knows whether an agent works, and together with the agent why it does not."""
    assert expected == agent_of(node("gpu01"), found, gpu_node, NAMESPACE)


def test_two_pods() -> None:
    """While one pod replaces the other, one that is ready is enough."""
    assert pods_by_node([pod(ready=True, name="a"), pod(name="b")]) == {"gpu01": pod(ready=True, name="a")}


def test_crash_is_told() -> None:
    """What a dead agent has reported does not stand there as if it were so: GPUNode and policy say where to look."""
    good, last = settle(snapshot(node()))
    assert _condition(good.gpu_nodes[0]).status == "True"

    bad = build_plan(replace(good, agent_pods=(pod("CrashLoopBackOff"),)), LATER, last.standing)

    [written] = bad.gpu_node_conditions
    assert [condition.type for condition in written.conditions] == [CONFIG_ASSIGNED, AGENT_READY]
    told = written.conditions[1]
    assert (told.status, told.reason) == ("False", "AgentNotReady")
    assert told.message == (
        "the agent of gpu01 is not ready, what it reported may be outdated (CrashLoopBackOff): "
        "kubectl logs -n gpu-operator agent-1"
    )
    rolled_out = next(condition for condition in bad.policies[0].conditions if condition.type == "RolledOut")
    assert "waiting for gpu01 (CrashLoopBackOff): kubectl logs -n gpu-operator agent-1" in rolled_out.message
    assert bad.gpu_nodes == bad.events == ()


def _condition(gpu_node: GPUNode) -> Condition:
    return next(condition for condition in gpu_node.status.conditions if condition.type == AGENT_READY)


def test_kept_away() -> None:
    """Where a person keeps the agent away nobody waits for it, the node is not counted, and its GPUNode says so."""
    away = node("gpu02", **{names.LABEL_DEPLOY_DEVICE_PLUGIN: "false"})
    found, _ = settle(snapshot(node(), away))

    condition = _condition(next(gpu_node for gpu_node in found.gpu_nodes if gpu_node.name == "gpu02"))
    assert (condition.status, condition.reason) == ("False", "NotDeployed")
    assert names.LABEL_DEPLOY_DEVICE_PLUGIN in condition.message
    assert "kubectl" not in condition.message
    rolled_out = condition_of(found, "RolledOut")
    assert (rolled_out.status, rolled_out.message) == ("True", "applied on 1 of 1 GPU node: unshared on 1 node")


def test_left_paused() -> None:
    """A manager that failed in the middle of its work leaves its word behind; how to take it away is said."""
    paused = node(**{names.LABEL_DEPLOY_DEVICE_PLUGIN: "paused-for-mig-change"})

    found, _ = settle(snapshot(paused))

    remedy = "kubectl label node gpu01 --overwrite nvidia.com/gpu.deploy.device-plugin=true"
    assert _condition(found.gpu_nodes[0]).message.endswith(remedy)
