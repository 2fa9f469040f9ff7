"""What a node is made of: containerd, kubelet and kube-proxy, their configuration, and the cgroups of its pods."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from support.images.workloads import PAUSE
from support.real_cluster import access, cgroups
from support.real_cluster.access import Access
from support.real_cluster.control_plane import POD_CIDR
from support.real_cluster.daemons import Daemon
from support.real_cluster.namespaces import NODE_IP
from support.real_cluster.programs import Programs

KUBELET: Final = "kubelet"
CONTAINERD: Final = "containerd"
_CONTAINERD_SOCKET: Final = "/run/containerd/containerd.sock"
_NO_NAMES: Final = "10.96.0.10"
"""Where pods look for names; nobody answers there."""
_CONTAINERD_CONFIG: Final = """\
version = 3
root = "{state}/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.nri.v1.nri",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.erofs",
  "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"]
[grpc]
  address = "{socket}"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "{pause}"
[plugins."io.containerd.cri.v1.runtime"]
  # Whoever may not lower the score of a process could start no container otherwise.
  restrict_oom_score_adj = true
  enable_cdi = true
[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = ["/usr/lib/cni"]
  conf_dir = "{state}/cni"
"""
_RUNTIME: Final = """\
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.{name}]
  runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.{name}.options]
    BinaryName = "{runc}"
"""
_RUNTIMES: Final = ("runc", "nvidia")
"""NVIDIA's is runc here: what it would add, the tests put where the host's driver is."""
_NETWORK: Final = {
    "cniVersion": "1.0.0", "name": "pods",
    "plugins": [{
        "type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]},
    }],
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """How the programs are to run."""

    name: str
    programs: Programs
    access: Access
    state: Path
    kubelet_settings: Mapping[str, Any] = field(default_factory=dict)
    """Fields of its KubeletConfiguration that differ."""

    @property
    def _cgroup(self) -> str:
        return f"/{self.state.name}"

    def configure(self) -> None:
        """Writes the files that the programs read, and makes the cgroups."""
        (self.state / "cni").mkdir(exist_ok=True)
        (self.state / "cni" / "pods.conflist").write_text(json.dumps(_NETWORK))
        (self.state / "resolv.conf").write_text(f"nameserver {_NO_NAMES}\n")
        runtimes = [_RUNTIME.format(name=name, runc=shutil.which("runc")) for name in _RUNTIMES]
        text = _CONTAINERD_CONFIG.format(state=self.state, socket=_CONTAINERD_SOCKET, pause=PAUSE)
        (self.state / "containerd.toml").write_text("".join([text, *runtimes]))
        (self.state / "kubelet.yaml").write_text(yaml.safe_dump(self._kubelet()))
        (self.state / "proxy.yaml").write_text(yaml.safe_dump(self._proxy()))
        cgroups.make(self.state.name)

    def remove_cgroups(self) -> None:
        """Takes away what `configure` and the kubelet made, once nothing runs in them."""
        cgroups.remove(self.state.name)

    def containerd(self) -> Daemon:
        """The runtime."""
        return self._daemon(CONTAINERD, f"--config={self.state / 'containerd.toml'}")

    def ctr(self, *args: str | Path) -> tuple[str, ...]:
        """The command line of the runtime's client."""
        program = str(self.programs.find("ctr"))
        return (program, f"--address={_CONTAINERD_SOCKET}", "--namespace=k8s.io", *map(str, args))

    def others(self) -> Iterator[Daemon]:
        """Whoever needs the runtime and the API server."""
        yield self.kubelet()
        yield self._daemon("kube-proxy", f"--config={self.state / 'proxy.yaml'}")

    def kubelet(self) -> Daemon:
        """The kubelet."""
        kubeconfig = self.access.kubeconfig_file(self.access.node_user)
        return self._daemon(
            KUBELET, f"--config={self.state / 'kubelet.yaml'}", f"--kubeconfig={kubeconfig}",
            f"--hostname-override={self.name}", f"--node-ip={NODE_IP}",
        )  # fmt: skip

    def _daemon(self, name: str, *options: str) -> Daemon:
        command = (str(self.programs.find(name)), *options)
        return Daemon(name=name, command=command, environ={"PATH": self.programs.path})

    def _kubelet(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "authentication": {
                "anonymous": {"enabled": False}, "webhook": {"enabled": False},
                "x509": {"clientCAFile": str(self.access.file("ca.crt"))},
            },
            # Only the API server has a certificate of this authority.
            "authorization": {"mode": "AlwaysAllow"},
            "tlsCertFile": str(self.access.file("kubelet.crt")), "tlsPrivateKeyFile": str(self.access.file("kubelet.key")),
            "containerRuntimeEndpoint": f"unix://{_CONTAINERD_SOCKET}", "cgroupDriver": "cgroupfs",
            "cgroupRoot": self._cgroup, "failCgroupV1": False, "failSwapOn": False,
            "clusterDNS": [_NO_NAMES], "clusterDomain": "cluster.local",
            "resolvConf": str(self.state / "resolv.conf"), "volumePluginDir": str(self.state / "volume-plugins"),
            "imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
            # A disk that others have filled is not what is tested.
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            **self.kubelet_settings,
        }  # fmt: skip

    def _proxy(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "iptables",
            "clusterCIDR": POD_CIDR, "hostnameOverride": self.name, "conntrack": {"maxPerCore": 0},
            "clientConnection": {"kubeconfig": str(self.access.kubeconfig_file(access.PROXY))},
        }  # fmt: skip
