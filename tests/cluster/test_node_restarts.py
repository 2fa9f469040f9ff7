"""A real node on which everything is restarted in turn, while pods use GPUs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.real_cluster.gpu_node import GPUS, NAMESPACE, NEXT_IMAGE, GpuNode, gpus_of, pod_of
from support.real_cluster.kubectl import until

PODS = ("one", "two", "three")


@pytest.fixture
def busy_node(node: GpuNode) -> GpuNode:
    """The node, with some pods that hold shares."""
    node.run_pods(*PODS, shares=2)
    node.until_running(*PODS)
    return node


def lives_of(node: GpuNode) -> dict[str, tuple[str, int]]:
    """Uid and restarts of each of the pods."""
    found = (node.kubectl.get("pod", name) for name in PODS)
    return {
        pod["metadata"]["name"]: (pod["metadata"]["uid"], pod["status"]["containerStatuses"][0]["restartCount"])
        for pod in found
    }


def shares_of(node: GpuNode) -> dict[str, frozenset[str]]:
    """What each of the pods holds; the kubelet names it in any order."""
    return {name: frozenset(each.ids) for name, each in node.holders().items() if name in PODS}


def ready_agent(node: GpuNode) -> dict[str, Any]:
    """The agent's pod, which a restart of anything makes unready for a moment."""
    return until("the agent is ready", node.agent)


def registrations(node: GpuNode) -> str:
    """How often the agent has registered, as its metrics say."""
    pod = ready_agent(node)["metadata"]["name"]
    metrics = node.kubectl("get", "--raw", f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}:9409/proxy/metrics")
    return next(line for line in metrics.splitlines() if line.startswith("gpushare_registrations_total"))


def test_kubelet_restart(busy_node: GpuNode) -> None:
    """The agent registers again; pods run on with their shares, and a new pod gets one that is free."""
    lives, shares, agent = lives_of(busy_node), shares_of(busy_node), ready_agent(busy_node)
    before = registrations(busy_node)

    busy_node.cluster.restart_kubelet()

    until("the agent registers again", lambda: registrations(busy_node) != before)
    busy_node.until_allocatable(GPUS * 4)
    busy_node.run_pods("new", shares=GPUS * 4 - 2 * len(PODS))
    busy_node.until_running("new")
    assert not set(busy_node.holders()["new"].ids) & {share for held in shares.values() for share in held}
    assert shares_of(busy_node) == shares
    assert lives_of(busy_node) == lives
    assert ready_agent(busy_node)["metadata"]["uid"] == agent["metadata"]["uid"]


def test_agent_restart(busy_node: GpuNode) -> None:
    """Another agent takes over what the last one served; pods run on with their shares."""
    lives, shares, agent = lives_of(busy_node), shares_of(busy_node), ready_agent(busy_node)

    busy_node.kubectl("delete", "pod", "-n", NAMESPACE, agent["metadata"]["name"])

    until("another agent is ready", lambda: busy_node.agent()["metadata"]["uid"] != agent["metadata"]["uid"])
    busy_node.until_allocatable(GPUS * 4)
    busy_node.run_pods("new", shares=GPUS * 4 - 2 * len(PODS))
    busy_node.until_running("new")
    assert shares_of(busy_node) == shares
    assert lives_of(busy_node) == lives


def test_upgrade(busy_node: GpuNode) -> None:
    """An image of another version goes to the agents; pods run on with their shares."""
    lives, shares = lives_of(busy_node), shares_of(busy_node)

    def is_on(image: str) -> bool:
        return bool(busy_node.agent()["spec"]["containers"][0]["image"] == image)

    try:
        busy_node.upgrade("--set", f"agentImage={NEXT_IMAGE}")
        until("the agent is of the new image", lambda: is_on(NEXT_IMAGE))
        busy_node.until_allocatable(GPUS * 4)
        busy_node.run_pods("new", shares=GPUS * 4 - 2 * len(PODS))
        busy_node.until_running("new")
        assert shares_of(busy_node) == shares
        assert lives_of(busy_node) == lives
    finally:
        busy_node.upgrade("--set", "agentImage=")
        until("the agent is of the old image", lambda: not is_on(NEXT_IMAGE))


def test_reboot(node: GpuNode) -> None:
    """After a power cut, a workload has its GPUs again, through the environment that its new pods find."""
    replicas = 6
    pod = pod_of("", 1)
    template = {"metadata": {"labels": {"app": "rebooted"}}, "spec": pod["spec"]}
    deployment = {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "rebooted", "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "rebooted"}}, "template": template},
    }  # fmt: skip
    node.kubectl.apply(deployment)
    try:
        until("they run", lambda: len(running(node)) == replicas)

        node.cluster.stop()
        node.cluster.start()
        node.cluster.start_node(**node.cluster.node.kubelet_settings)

        node.until_allocatable(GPUS * 4)
        until("they run again", lambda: len(running(node)) == replicas)
        holders = node.holders()
        for name in running(node):
            assert {node.environ_of(name)["NVIDIA_VISIBLE_DEVICES"]} == gpus_of(holders[name].ids)
    finally:
        node.kubectl("delete", "deployment", "rebooted")


def running(node: GpuNode) -> list[str]:
    """The pods whose container runs, as the kubelet of now says."""
    pods = node.kubectl.items("pods", "-l", "app=rebooted", "--field-selector=status.phase=Running")
    return [pod["metadata"]["name"] for pod in pods if json.dumps(pod["status"]).count('"ready": true')]
