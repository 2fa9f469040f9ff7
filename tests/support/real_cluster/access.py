"""Who may come in: the authority of a cluster, its certificates, and a token for every user."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from gpushare.sandbox.apiserver.kubeconfigs import build_kubeconfig
from gpushare.serving.certificates import Authority
from support.real_cluster.namespaces import NODE_IP

API_PORT: Final = 6443
SERVICE_IP: Final = "10.96.0.1"
"""Of the service `kubernetes`."""
ADMIN: Final = "admin"
PERSON: Final = "u"
"""Another administrator, by the name that one has in the recorded answers."""
NOBODY: Final = "nobody"
CONTROLLER_MANAGER: Final = "system:kube-controller-manager"
SCHEDULER: Final = "system:kube-scheduler"
PROXY: Final = "system:kube-proxy"
_HOSTS: Final = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_GROUPS: Final = {ADMIN: "system:masters", PERSON: "system:masters"}


@dataclass(frozen=True, slots=True)
class Access:
    """Keys and tokens of a cluster, and the files that its programs read them from."""

    folder: Path
    node: str
    authority: Authority = field(default_factory=lambda: Authority.create("kubernetes"))
    _tokens: dict[str, str] = field(default_factory=dict)

    @property
    def node_user(self) -> str:
        """The user that the kubelet is."""
        return f"system:node:{self.node}"

    def write(self) -> None:
        """Makes everything anew."""
        self.folder.mkdir(mode=0o700)
        self.file("ca.crt").write_text(self.authority.pem)
        self._issue("apiserver", *_HOSTS, "127.0.0.1", SERVICE_IP, NODE_IP)
        self._issue("kubelet", self.node, NODE_IP)
        self._issue("kubelet-client")
        self._issue("service-accounts")
        groups = {**_GROUPS, self.node_user: "system:nodes"}
        for user in (ADMIN, PERSON, NOBODY, CONTROLLER_MANAGER, SCHEDULER, PROXY, self.node_user):
            self._tokens[user] = secrets.token_hex()
        rows = [f'{token},{user},,"{groups.get(user, "")}"' for user, token in self._tokens.items()]
        self.file("tokens.csv").write_text("\n".join(rows) + "\n")
        for user in (CONTROLLER_MANAGER, SCHEDULER, PROXY, self.node_user):
            self.kubeconfig_file(user).write_text(yaml.safe_dump(self.kubeconfig(user, API_PORT)))

    def file(self, name: str) -> Path:
        """A file of that name."""
        return self.folder / name

    def kubeconfig_file(self, user: str) -> Path:
        """The kubeconfig of a program of the cluster."""
        return self.file(f"{user.rpartition(':')[2]}.kubeconfig")

    def kubeconfig(self, user: str, port: int) -> dict[str, Any]:
        """How a user gets to the API server at a port of this machine, or of the cluster's network."""
        server = f"https://127.0.0.1:{port}"
        return build_kubeconfig(server=server, ca_pem=self.authority.pem, user=user, token=self._tokens[user])

    def _issue(self, name: str, *hosts: str) -> None:
        pair = self.authority.issue(name, hosts)
        self.file(f"{name}.crt").write_text(pair.certificate)
        self.file(f"{name}.key").write_text(pair.key)
