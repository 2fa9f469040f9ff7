"""Pods with shares on a real node: what they get, what the kubelet knows of them, and what it refuses."""

from __future__ import annotations

from gpushare import names
from support.real_cluster.gpu_node import GPUS, NODE, GpuNode, gpus_of
from support.real_cluster.kubectl import until


def test_environment_of_a_pod(node: GpuNode) -> None:
    """A program in the pod finds the GPU whose share the kubelet says that the pod holds."""
    node.run_pods("one", "two", shares=1)
    node.until_running("one", "two")

    for pod in ("one", "two"):
        seen = node.environ_of(pod)["NVIDIA_VISIBLE_DEVICES"]
        assert {seen} == gpus_of(node.holders()[pod].ids)


def test_several_shares(node: GpuNode) -> None:
    """Several shares are spread over GPUs, and the program sees each of those."""
    node.run_pods("three", shares=3)
    node.until_running("three")

    gpus = gpus_of(node.holders()["three"].ids)
    assert len(gpus) == 3
    assert set(node.environ_of("three")["NVIDIA_VISIBLE_DEVICES"].split(",")) == gpus


def test_all_shares(node: GpuNode) -> None:
    """Sixteen pods run on four GPUs, four on each; the seventeenth waits, and is told for what."""
    pods = [f"p{number:02}" for number in range(GPUS * 4 + 1)]
    node.run_pods(*pods)

    def told() -> bool:
        waiting = [pod for pod in pods if node.phase_of(pod) == "Pending"]
        return len(waiting) == 1 and "Insufficient nvidia.com/gpu" in node.kubectl("describe", "pod", waiting[0])

    until("one pod waits", told)
    ids = [held for each in node.holders().values() for held in each.ids]
    assert len(set(ids)) == len(ids) == GPUS * 4
    assert len(gpus_of(ids)) == GPUS


def test_who_holds_what(node: GpuNode) -> None:
    """The GPUNode names the pods that hold shares."""
    node.run_pods("one", shares=2)
    node.until_running("one")

    def told() -> bool:
        return '"pod": "one"' in node.kubectl("get", "gpunode", NODE, "-o", "json")

    until("the GPUNode names the pod", told)


def test_past_the_scheduler(node: GpuNode) -> None:
    """A pod for which the node has not enough is refused by the kubelet, with its numbers."""
    node.run_pods("many", shares=GPUS * 4 - 1)
    node.until_running("many")

    node.run_pods("more", shares=2, node_name=NODE)

    until("the kubelet refuses", lambda: node.phase_of("more") == "Failed")
    status = node.kubectl.get("pod", "more")["status"]
    assert status["reason"] == "UnexpectedAdmissionError"
    assert "Requested: 2, Available: 1" in status["message"]


def test_refused_by_the_agent(node: GpuNode) -> None:
    """Where one share a container is the rule, the pod says so in the agent's words."""
    text = (
        "version: v1\nsharing:\n  timeSlicing:\n    failRequestsGreaterThanOne: true\n"
        f"    resources: [{{name: {names.RESOURCE_GPU}, replicas: 5}}]\n"
    )
    node.configure(text)
    node.until_allocatable(GPUS * 5)

    node.run_pods("two", shares=2)

    until("the agent refuses", lambda: node.phase_of("two") == "Failed")
    status = node.kubectl.get("pod", "two")["status"]
    assert status["reason"] == "UnexpectedAdmissionError"
    assert "maximum request size for shared resources is 1; found 2" in status["message"]
