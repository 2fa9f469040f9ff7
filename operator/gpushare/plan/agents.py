"""The agent of one node as its pod shows it: at work, starting, or in trouble, and then what to type. Used by `fleet`.

The agent's own report cannot say this: what a dead agent has reported stays as it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from gpushare import names
from gpushare.domain.conditions import Condition
from gpushare.domain.gpunode import AGENT_READY, DEVICES_READY, REGISTERED, GPUNode
from gpushare.plan.snapshot import AgentPod, Node

_CRASHES: Final = frozenset({"CrashLoopBackOff"})
"""Troubles that stand in the log of the pod; all others stand in its description."""

_PAUSED: Final = "paused-for-"
"""How values of deploy labels begin that managers of NVIDIA's set for a while, and leave behind when they fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """Whether somebody does the work on a node."""

    text: str = ""
    """Why nobody does, the same for all nodes that are in the same trouble; empty: all is well."""
    remedy: str = ""
    """A command that tells more about this node."""

    @property
    def ready(self) -> bool:
        """What it reports is so now."""
        return not self.text


def agent_of(node: Node, pod: AgentPod | None, gpu_node: GPUNode | None, namespace: str) -> Agent:
    """How the agent of one node is.

    Args:
        node: which.
        pod: None where there is none yet.
        gpu_node: what it reported; asked why it is not ready, as long as its pod shows no worse trouble.
        namespace: of the pod.
    """
    if pod is not None and pod.ready:
        return Agent()
    if pod is not None and pod.trouble in _CRASHES:
        return Agent(text=pod.trouble, remedy=f"kubectl logs -n {namespace} {pod.name}")
    # The same before and after there is a pod: what is told anew is written anew.
    pods = f"-l app={names.DAEMONSET_DEVICE_PLUGIN} --field-selector spec.nodeName={node.name}"
    text = (pod.trouble or _own_words(gpu_node) if pod is not None else "") or "agent not ready"
    return Agent(text=text, remedy=f"kubectl describe pods -n {namespace} {pods}")


def _own_words(gpu_node: GPUNode | None) -> str:
    if gpu_node is None:
        return ""
    bad = (c for c in gpu_node.status.conditions if c.type in {DEVICES_READY, REGISTERED} and c.status == "False")
    return next((condition.message for condition in bad), "")


def pods_by_node(pods: Iterable[AgentPod]) -> dict[str, AgentPod]:
    """One pod a node. While one replaces the other there are two, and one that is ready is enough."""
    return {pod.node: pod for pod in sorted(pods, key=lambda pod: (pod.ready, pod.name))}


def condition_of(node: Node, agent: Agent | None) -> Condition:
    """`AgentReady` of one node, without its times.

    Args:
        node: which.
        agent: None where none is meant to run.
    """
    if agent is None:
        message = (
            f"label {names.LABEL_DEPLOY_DEVICE_PLUGIN} keeps the agent away from {node.name}: "
            "its GPUs are not offered, and what was reported is outdated"
        )
        if (value := node.labels.get(names.LABEL_DEPLOY_DEVICE_PLUGIN, "")).startswith(_PAUSED):
            message += (
                f". Its value {value} is that of a MIG or driver manager at work; where none is any more: "
                f"kubectl label node {node.name} --overwrite {names.LABEL_DEPLOY_DEVICE_PLUGIN}=true"
            )
        return Condition(type=AGENT_READY, status="False", reason="NotDeployed", message=message)
    if agent.ready:
        return Condition(
            type=AGENT_READY, status="True", reason="Ready", message=f"the agent of {node.name} is at work"
        )
    message = f"the agent of {node.name} is not ready, what it reported may be outdated ({agent.text}): {agent.remedy}"
    return Condition(type=AGENT_READY, status="False", reason="AgentNotReady", message=message)
