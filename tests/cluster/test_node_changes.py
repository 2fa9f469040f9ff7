"""A real node whose GPUs fall ill and recover, and whose configuration shrinks, while pods use it."""

from __future__ import annotations

from gpushare import names
from support.real_cluster.gpu_node import GPUS, NODE, GpuNode, gpus_of
from support.real_cluster.kubectl import until
from support.snapshots import time_slicing

TELLS_HEALTH_SINCE = 36
"""The minor version of Kubernetes from which a pod's status says how its devices are, unless that is switched off."""


def test_unhealthy_and_recovered(node: GpuNode) -> None:
    """A lost GPU takes all of its shares with it, and brings them back; the pod on it runs on, and its status says so."""
    node.run_pods("one")
    node.until_running("one")
    [gpu] = gpus_of(node.holders()["one"].ids)

    node.tell_driver(f"lost {gpu}")
    try:
        node.until_allocatable(GPUS * 4 - 4, capacity=GPUS * 4)
        if node.minor_version() >= TELLS_HEALTH_SINCE:
            until("the pod's status tells", lambda: "Unhealthy" in str(node.kubectl.get("pod", "one")["status"]))
        assert node.phase_of("one") == "Running"
        until("the GPUNode tells", lambda: gpu in node.kubectl("get", "gpunode", NODE, "-o", "yaml"))
    finally:
        node.tell_driver(f"restore {gpu}")
    node.until_allocatable(GPUS * 4)
    assert node.phase_of("one") == "Running"


def test_shrink_under_load(node: GpuNode) -> None:
    """Fewer shares than are in use: whoever has one keeps it, and nobody else gets one until enough are free."""
    pods = [f"p{number:02}" for number in range(GPUS * 4)]
    node.run_pods(*pods)
    node.until_running(*pods)

    node.share(2)

    assert [node.phase_of(pod) for pod in pods] == ["Running"] * len(pods)
    assert set(pods) <= set(node.holders())
    node.run_pods("more")
    until("it waits", lambda: "Insufficient nvidia.com/gpu" in node.kubectl("describe", "pod", "more"))
    node.clear(*pods)
    node.until_running("more")


def test_shrink_refused(node: GpuNode) -> None:
    """With onShrink: refuse, the old configuration stays as long as more is in use, and the GPUNode says why."""
    pods = [f"p{number:02}" for number in range(GPUS * 2 + 1)]
    node.run_pods(*pods)
    node.until_running(*pods)

    node.configure(f"{time_slicing(2)}gpushare:\n  onShrink: refuse\n")

    def told() -> bool:
        conditions = node.gpu_node()["status"]["conditions"]
        applied = next(each for each in conditions if each["type"] == "ConfigApplied")
        assert applied["status"] == "False", applied
        assert "in use" in applied["message"], applied
        return True

    until("the GPUNode tells", told)
    assert node.shown() == ("16", "16")
    node.clear(pods[0])
    node.until_allocatable(GPUS * 2)


def test_renamed(node: GpuNode) -> None:
    """Shares under another name: the old one shows 0, and a pod that asks for the new one finds its GPU."""
    shared = f"{names.RESOURCE_GPU}.shared"
    node.configure(time_slicing(3).replace("    resources:", "    renameByDefault: true\n    resources:"))
    until("the node shows them", lambda: node.shown(shared) == ("12", "12") and node.shown() == ("0", "0"))

    node.run_pods("one", resource=shared)
    node.until_running("one")

    assert {node.environ_of("one")["NVIDIA_VISIBLE_DEVICES"]} == gpus_of(node.holders()["one"].ids)
