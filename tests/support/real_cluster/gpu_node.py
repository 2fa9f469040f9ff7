"""A cluster whose one node has four GPUs and runs this project, as an administrator has installed it.

The GPUs are those of the C stand-in of NVIDIA's library, which lies where the driver of the node would be; everything else is
real, and as the chart and the operator make it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, Final

from gpushare import data, names
from gpushare.kubelet import podresources
from gpushare.kubelet.values import ContainerDevices
from support import helm
from support.driver_roots import CONTROL_NODES, numbers_of
from support.images import operator, workloads
from support.nvml_library import LIBRARY, build_library
from support.real_cluster.cluster import RealCluster
from support.real_cluster.kubectl import until
from support.snapshots import time_slicing

NODE: Final = "gpu01"
GPUS: Final = 4
NAMESPACE: Final = helm.NAMESPACE
SAMPLE: Final = "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda11.7.1-ubuntu20.04"
NEXT_IMAGE: Final = f"docker.io/library/{names.IMAGE}:next"
"""The same image under another name, as if it were a newer version."""
_DESCRIPTION: Final = f"driver 550.90.07\ncuda 12040\ngpus {GPUS} T4\n"
_DRIVER_ROOT: Final = "/run/nvidia/driver"
_CONFIG: Final = "sharing"
_RUNTIME_CLASS: Final = {
    "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "nvidia"}, "handler": "nvidia",
}  # fmt: skip


class GpuNode:
    """The node, its GPUs, and what people do with them."""

    def __init__(self, cluster: RealCluster) -> None:
        self.cluster = cluster
        self.kubectl = cluster.kubectl
        self._driver = cluster.state / "driver"
        folder = self._driver / "usr/lib/x86_64-linux-gnu"
        folder.mkdir(parents=True)
        shutil.copy(build_library(), folder / LIBRARY)
        (self._driver / "node.conf").write_text(_DESCRIPTION)
        (self._driver / "control").touch()
        cluster.mounts[_DRIVER_ROOT] = self._driver
        cluster.devices |= CONTROL_NODES | numbers_of(f"/dev/nvidia{index}" for index in range(GPUS))

    # What an administrator does.

    def install(self) -> None:
        """Images, the chart, the policy of the walk-through; returns when the node shows its GPUs."""
        for write in (workloads.write_samples, _write_operator, self._write_kube_scheduler):
            archive = self.cluster.state / "image.tar"
            write(archive)
            self.cluster.import_image(archive)
            archive.unlink()
        # What NVIDIA's container toolkit and node feature discovery leave behind.
        self.kubectl.apply(_RUNTIME_CLASS)
        self.kubectl("label", "node", NODE, f"{names.LABELS_NFD_GPU[0]}=true")
        helm.change("install", self.cluster.kubeconfig(), helm.CHART, "--create-namespace")
        for path in data.path_of("examples").glob("00-*/*.yaml"):
            self.kubectl("apply", "-f", str(path))
        self.until_allocatable(GPUS)

    def _write_kube_scheduler(self, archive: Path) -> None:
        program = self.cluster.control_plane.programs.find("kube-scheduler")
        version = self._version()
        workloads.write_program(archive, program, f"docker.io/library/kube-scheduler:{version}")

    def upgrade(self, *options: str, chart: Path = helm.CHART) -> None:
        """Another set of values, besides those that the release has; returns when what it changes is ready."""
        helm.change("upgrade", self.cluster.kubeconfig(), chart, "--reset-then-reuse-values", *options)

    def share(self, replicas: int) -> None:
        """Shares every GPU, and returns when the node shows it."""
        self.configure(time_slicing(replicas))
        self.until_allocatable(GPUS * replicas)

    def configure(self, text: str) -> None:
        """Makes a text the configuration of all nodes."""
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": _CONFIG, "namespace": NAMESPACE}}
        self.kubectl.apply({**body, "data": {"any": text}})
        config = f'{{"spec": {{"devicePlugin": {{"config": {{"name": "{_CONFIG}", "default": "any"}}}}}}}}'
        self.kubectl("patch", "clusterpolicy", "cluster-policy", "--type=merge", "-p", config)

    def tell_driver(self, *lines: str) -> None:
        """Lets something happen to the GPUs; the language of `support.nvml_stub`."""
        with (self._driver / "control").open("a") as control:
            control.writelines(f"{line}\n" for line in lines)

    # What people run.

    def run_pods(self, *pods: str, shares: int = 1, resource: str = names.RESOURCE_GPU, node_name: str = "") -> None:
        """Creates pods that ask for shares, and rest; with the name of a node, past the scheduler."""
        manifests = [pod_of(name, shares, resource) for name in pods]
        for manifest in manifests:
            manifest["spec"] |= {"nodeName": node_name} if node_name else {}
        self.kubectl.apply(*manifests)

    def until_running(self, *pods: str) -> None:
        """Waits until these pods run."""
        for name in pods:
            until(f"pod {name} runs", partial(self._is_running, name))

    def clear(self, *pods: str) -> None:
        """Deletes pods, or all of the namespace `default`; returns when they are gone."""
        self.kubectl("delete", "pods", *(pods or ["--all"]), "--grace-period=1", "--ignore-not-found")

    # What people see.

    def phase_of(self, pod: str) -> str:
        return str(self.kubectl.get("pod", pod)["status"].get("phase", ""))

    def _is_running(self, pod: str) -> bool:
        return self.phase_of(pod) == "Running"

    def environ_of(self, pod: str) -> dict[str, str]:
        """What a program in the pod finds in its environment."""
        lines = self.kubectl("exec", pod, "--", "env").splitlines()
        return dict(line.split("=", 1) for line in lines)

    def holders(self) -> dict[str, ContainerDevices]:
        """What the kubelet says who holds which shares, by the name of the pod."""
        socket = self.cluster.on_node("/var/lib/kubelet/pod-resources/kubelet.sock")
        return {each.pod: each for each in podresources.read_holders(socket)}

    def shown(self, resource: str = names.RESOURCE_GPU) -> tuple[str, str]:
        """Capacity and allocatable of the node."""
        status = self.kubectl.get("node", NODE)["status"]
        return status["capacity"].get(resource, ""), status["allocatable"].get(resource, "")

    def until_allocatable(self, number: int, *, capacity: int | None = None) -> None:
        """Waits until the node shows so many shares."""
        wanted = (str(number if capacity is None else capacity), str(number))

        def holds() -> bool:
            shown = self.shown()
            assert shown == wanted, shown
            return True

        until(f"the node shows {wanted} shares", holds)

    def agent(self) -> dict[str, Any]:
        """The agent's pod, which is ready. Raises AssertionError while there is none."""
        pods = self.kubectl.items("pods", "-n", NAMESPACE, "-l", f"app={names.DAEMONSET_DEVICE_PLUGIN}")
        staying = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        assert len(staying) == 1, f"{len(staying)} pods of agents"
        [pod] = staying
        conditions = {each["type"]: each["status"] for each in pod["status"].get("conditions", ())}
        assert conditions.get("Ready") == "True", conditions
        return pod

    def minor_version(self) -> int:
        """Of the kubelet: 37 for v1.37.2."""
        return int(self._version().split(".")[1])

    def _version(self) -> str:
        return str(self.kubectl.get("node", NODE)["status"]["nodeInfo"]["kubeletVersion"])

    def gpu_node(self) -> dict[str, Any]:
        """What agent and controller tell about the node."""
        return self.kubectl.get("gpunode", NODE)


def pod_of(name: str, shares: int, resource: str = names.RESOURCE_GPU) -> dict[str, Any]:
    """A pod that rests, with shares of GPUs."""
    container = {
        "name": "main", "image": SAMPLE, "command": ["/bin/sleep", "infinity"],
        "resources": {"limits": {resource: str(shares)}},
    }  # fmt: skip
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]},
    }  # fmt: skip


def gpus_of(devices: Iterable[str]) -> set[str]:
    """The UUIDs of the GPUs of which these are shares."""
    return {device.partition("::")[0] for device in devices}


def _write_operator(archive: Path) -> None:
    operator.write_archive(archive, references=(f"docker.io/library/{operator.REFERENCE}", NEXT_IMAGE))
