"""Fractions on a real node: a real kube-scheduler asks the extender, a real API server the webhook, a real kubelet the agent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpushare import data, names
from support.real_cluster import fractions
from support.real_cluster.fractions import GPU_UNITS, KUBE_SCHEDULER, FractionNode
from support.real_cluster.gpu_node import GPUS, NAMESPACE, GpuNode, pod_of
from support.real_cluster.kubectl import until

JOB = "job-of-three"
GATE = "example.com/not-yet"
FORGED = f"{names.ANNOTATION_DECISION}={{}}"


@pytest.fixture(scope="module")
def installed(installed_node: GpuNode) -> Iterator[FractionNode]:
    """The node, with fractions switched on in its chart."""
    with fractions.installed(installed_node) as node:
        yield node


@pytest.fixture
def served(installed: FractionNode) -> Iterator[FractionNode]:
    """The same without anybody's pods; it gives out what was last asked for."""
    yield installed
    installed.node.kubectl("delete", "jobs", "--all")
    installed.node.clear()


def part_of(name: str, units: int) -> dict[str, Any]:
    """A pod with some GiB of a GPU."""
    return pod_of(name, units, names.RESOURCE_ALIYUN_MEM)


def job_of(name: str) -> dict[str, Any]:
    """Three pods at once, each with 4 GiB of a GPU."""
    template = {"metadata": {"labels": {"app": name}}, "spec": part_of("", 4)["spec"] | {"restartPolicy": "Never"}}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "default"}}
    return {**body, "spec": {"parallelism": 3, "template": template}}


def pods_of(node: GpuNode, job: str) -> list[str]:
    """Those that run."""
    pods = node.kubectl.items("pods", "-l", f"app={job}", "--field-selector=status.phase=Running")
    return [pod["metadata"]["name"] for pod in pods]


def test_slots(served: FractionNode) -> None:
    """One label makes ten slots of each GPU; a pod finds its limits in its environment, and the table shows it."""
    served.serve_slots()
    pod = pod_of("part", 1)
    pod["spec"]["containers"][0]["resources"]["limits"] |= {names.RESOURCE_GPUMEM: 3000, names.RESOURCE_GPUCORES: 30}

    served.node.kubectl.apply(pod)
    served.node.until_running("part")

    served.check_held("part")
    environ = served.node.environ_of("part")
    assert environ["NVIDIA_VISIBLE_DEVICES"] in served.node.holders()["part"].ids[0]
    assert (environ["CUDA_DEVICE_MEMORY_LIMIT_0"], environ["CUDA_DEVICE_SM_LIMIT"]) == ("3000m", "30")
    until("the table shows it", lambda: served.inspect()[-1] == "3000/61440")


def test_own_pods_where_all_nodes_give_out_slots(served: FractionNode) -> None:
    """The taint of the only node keeps none of the pods away without which it gives out nothing."""
    served.serve_slots()

    served.restart(names.CONTROLLER, names.SCHEDULER, KUBE_SCHEDULER)


@pytest.mark.parametrize(
    ("placement", "gpus"),
    [("spread", ["0/15", "4/15", "4/15", "4/15"]), ("binpack", ["0/15", "0/15", "0/15", "12/15"])],
)
def test_job(served: FractionNode, placement: str, gpus: list[str]) -> None:
    """Three pods at once go to three GPUs or to one, as the node's label says, and Alibaba's table shows it."""
    served.serve_units(placement)

    served.node.kubectl.apply(job_of(JOB))

    until("they run", lambda: len(pods_of(served.node, JOB)) == 3)
    until("the table shows them", lambda: (sorted(served.inspect()[:GPUS]), served.inspect()[-1]) == (gpus, "12/60"))
    assert "12/60 (20%)" in served.node.kubectl("inspect", "cgpu")
    served.check_held(*pods_of(served.node, JOB))
    for pod in pods_of(served.node, JOB):
        environ = served.node.environ_of(pod)
        assert (environ["ALIYUN_COM_GPU_MEM_CONTAINER"], environ["ALIYUN_COM_GPU_MEM_DEV"]) == ("4", str(GPU_UNITS))


def test_kubelet_is_led(served: FractionNode) -> None:
    """Pods that differ, all at once: the kubelet gives each what was decided for it, and no GPU more than it has."""
    served.serve_units("binpack")
    sizes = (8, 7, 12, 3, 9, 6, 14, 1)
    pods = {f"part-{size}": part_of(f"part-{size}", size) for size in sizes}

    served.node.kubectl.apply(*pods.values())
    served.node.until_running(*pods)

    served.check_held(*pods)
    until("the table shows them", lambda: served.inspect() == [f"{GPU_UNITS}/{GPU_UNITS}"] * GPUS + ["60/60"])


def test_refused_at_creation(served: FractionNode) -> None:
    """What can never run is refused in words that say what to write."""
    [path] = data.path_of("examples").glob("09-*/two-dialects.yaml")

    done = served.node.kubectl.run("create", "-f", str(path))

    assert done.returncode
    assert 'admission webhook "fractions.gpushare.dev" denied the request' in done.stderr
    assert "write all containers in one of the two dialects" in done.stderr


def test_forged_decision(served: FractionNode) -> None:
    """Not even an administrator writes what the scheduler decides: neither into a new pod nor into one that is there."""
    served.serve_units("binpack")
    served.node.kubectl.apply(part_of("real", 4))
    served.node.until_running("real")

    for command in (
        ("run", "forged", "--image=any", "--annotations", FORGED),
        ("annotate", "--overwrite", "pod", "real", FORGED),
    ):
        done = served.node.kubectl.run(*command)
        assert "is written by the scheduler of fractions alone; leave it out" in done.stderr


def test_without_the_extender(served: FractionNode) -> None:
    """Pods with fractions wait and say for whom; what else comes runs. Once it is back, all of them do."""
    served.serve_units("binpack")
    gated, plain = part_of("gated", 4), pod_of("plain", 0)
    gated["spec"]["schedulingGates"] = [{"name": GATE}]
    del plain["spec"]["containers"][0]["resources"]
    kubectl = served.node.kubectl
    kubectl.apply(gated)

    served.scale(names.SCHEDULER, 0)
    try:
        kubectl("patch", "pod", "gated", "--type=json", "-p", '[{"op": "remove", "path": "/spec/schedulingGates"}]')
        kubectl.apply(plain)
        served.node.until_running("plain")
        until("the pod tells", lambda: "FailedScheduling" in served.events_of("gated"))
        # Last, since its controller tries again at ever longer intervals.
        kubectl.apply(job_of(JOB))
        until("the Job tells", lambda: "FailedCreate" in served.events_of(JOB))
        assert "/filter" in served.events_of("gated")
        assert f'no endpoints available for service "{names.SCHEDULER}"' in served.events_of(JOB)
    finally:
        served.scale(names.SCHEDULER, 1)

    served.node.until_running("gated")
    until("the Job's run", lambda: len(pods_of(served.node, JOB)) == 3)


def test_restart_keeps_the_books(served: FractionNode) -> None:
    """The next scheduler knows what each GPU has left: what fits runs, what does not says why, until there is room."""
    served.serve_units("spread")
    served.node.kubectl.apply(job_of(JOB))
    until("they run", lambda: len(pods_of(served.node, JOB)) == 3)

    served.restart(names.SCHEDULER, KUBE_SCHEDULER)
    served.node.kubectl.apply(part_of("whole", GPU_UNITS))
    served.node.until_running("whole")
    served.node.kubectl.apply(part_of("large", GPU_UNITS - 3))

    until("it tells why it waits", lambda: "4/4 CardInsufficientMemory" in served.events_of("large"))
    assert sorted(served.inspect()[:GPUS]) == ["15/15", "4/15", "4/15", "4/15"]
    served.node.clear("whole")
    served.node.until_running("large")
    served.check_held("large", *pods_of(served.node, JOB))


@pytest.fixture
def by_default(installed: FractionNode, tmp_path: Path) -> Iterator[FractionNode]:
    """The node, with the extender in the configuration of the control plane's own kube-scheduler."""
    node = installed.node
    node.upgrade("--set", "fractions.kubeScheduler.enabled=false")
    text = node.kubectl(
        "get", "configmap", "-n", NAMESPACE, names.SCHEDULER, "-o", r"jsonpath={.data.kube-scheduler\.yaml}"
    )
    told = yaml.safe_load(text)
    own = {
        "apiVersion": told["apiVersion"], "kind": told["kind"], "extenders": told["extenders"],
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(node.cluster.control_plane.scheduler_kubeconfig)},
    }  # fmt: skip
    config = tmp_path / "kube-scheduler.yaml"
    config.write_text(json.dumps(own))
    node.cluster.restart_scheduler(config)
    yield installed
    node.clear()
    node.cluster.restart_scheduler(None)
    node.upgrade("--set", "fractions.kubeScheduler.enabled=true")


def test_by_the_default_scheduler(by_default: FractionNode) -> None:
    """The cluster's own kube-scheduler asks, too, for pods with fractions and for no other."""
    by_default.serve_units("binpack")
    pods = [part_of("first", 4), part_of("second", 12)]

    by_default.node.kubectl.apply(*pods)
    by_default.node.until_running("first", "second")

    by_default.check_held("first", "second")
    assert by_default.node.kubectl.get("pod", "first")["spec"]["schedulerName"] == "default-scheduler"
    until("the table shows them", lambda: sorted(by_default.inspect()[:GPUS]) == ["0/15", "0/15", "12/15", "4/15"])
