"""What a control plane is made of: etcd, API server, controller manager and scheduler, as command lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.real_cluster import access
from support.real_cluster.access import API_PORT, Access
from support.real_cluster.daemons import Daemon
from support.real_cluster.namespaces import NODE_IP
from support.real_cluster.programs import Programs

API_SERVER: Final = "kube-apiserver"
SCHEDULER: Final = "kube-scheduler"
POD_CIDR: Final = "10.244.0.0/16"
_SERVICE_CIDR: Final = "10.96.0.0/16"
_ETCD: Final = "http://127.0.0.1:2379"
_ETCD_PEER: Final = "http://127.0.0.1:2380"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlane:
    """How the programs are to run."""

    programs: Programs
    access: Access
    state: Path
    scheduler_config: Path | None = None
    """A KubeSchedulerConfiguration; it names `scheduler_kubeconfig` itself."""

    @property
    def scheduler_kubeconfig(self) -> Path:
        """What a KubeSchedulerConfiguration names."""
        return self.access.kubeconfig_file(access.SCHEDULER)

    def etcd(self) -> Daemon:
        """The store. Not synchronised with the disk: the machine that fails under a test takes the test with it."""
        return self._daemon(
            "etcd", f"--data-dir={self.state / 'etcd'}", f"--listen-client-urls={_ETCD}",
            f"--advertise-client-urls={_ETCD}", f"--listen-peer-urls={_ETCD_PEER}",
            f"--initial-advertise-peer-urls={_ETCD_PEER}", f"--initial-cluster=default={_ETCD_PEER}", "--unsafe-no-fsync",
        )  # fmt: skip

    def api_server(self) -> Daemon:
        """With the admission plugins and the authorizers that are usual."""
        file = self.access.file
        return self._daemon(
            API_SERVER, f"--etcd-servers={_ETCD}", "--bind-address=0.0.0.0", f"--advertise-address={NODE_IP}",
            f"--secure-port={API_PORT}", f"--tls-cert-file={file('apiserver.crt')}",
            f"--tls-private-key-file={file('apiserver.key')}", f"--token-auth-file={file('tokens.csv')}",
            f"--client-ca-file={file('ca.crt')}", f"--requestheader-client-ca-file={file('ca.crt')}",
            "--requestheader-allowed-names=front-proxy-client", "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-signing-key-file={file('service-accounts.key')}",
            f"--service-account-key-file={file('service-accounts.crt')}",
            f"--kubelet-client-certificate={file('kubelet-client.crt')}",
            f"--kubelet-client-key={file('kubelet-client.key')}",
            "--kubelet-preferred-address-types=InternalIP", f"--service-cluster-ip-range={_SERVICE_CIDR}",
            # Webhooks that are named by a service are dialled where its pods are.
            "--enable-aggregator-routing=true", "--profiling=false",
        )  # fmt: skip

    def others(self) -> Iterator[Daemon]:
        """Whoever only talks to the API server."""
        file = self.access.file
        kubeconfig = self.access.kubeconfig_file(access.CONTROLLER_MANAGER)
        yield self._daemon(
            "kube-controller-manager", f"--kubeconfig={kubeconfig}", "--bind-address=127.0.0.1", "--leader-elect=false",
            f"--cert-dir={self.state / 'controller-manager'}", "--use-service-account-credentials=true",
            f"--service-account-private-key-file={file('service-accounts.key')}", f"--root-ca-file={file('ca.crt')}",
            "--allocate-node-cidrs=true", f"--cluster-cidr={POD_CIDR}", f"--service-cluster-ip-range={_SERVICE_CIDR}",
        )  # fmt: skip
        yield self.scheduler()

    def scheduler(self) -> Daemon:
        """The scheduler, as its configuration says."""
        configured = self.scheduler_config
        return self._daemon(
            SCHEDULER, f"--config={configured}" if configured else f"--kubeconfig={self.scheduler_kubeconfig}",
            "--bind-address=127.0.0.1", f"--cert-dir={self.state / 'scheduler'}",
            *(() if configured else ("--leader-elect=false",)),
        )  # fmt: skip

    def _daemon(self, name: str, *options: str) -> Daemon:
        return Daemon(name=name, command=(str(self.programs.find(name)), *options))
