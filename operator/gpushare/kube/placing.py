"""Which cluster a process works on, and in which namespace. Called by the processes that run as Deployments."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from gpushare import names
from gpushare.errors import UsageError
from gpushare.kube import credentials as credentials_
from gpushare.kube.credentials import Credentials


class Place(Protocol):
    """What was said of it on a command line."""

    @property
    def namespace(self) -> str:
        """The operator's own; empty: that of the pod or of the kubeconfig's context."""
        ...

    @property
    def kubeconfig(self) -> Path | None:
        """None: the service account of the pod."""
        ...

    @property
    def context(self) -> str:
        """Of the kubeconfig; empty: its current one."""
        ...


def find_place(said: Place, environ: Mapping[str, str], root: Path) -> tuple[Credentials, str]:
    """How to reach the cluster, and the operator's namespace.

    Raises:
        UsageError: this is neither a pod nor is a kubeconfig named, or it cannot be used, or no namespace is known.
    """
    if said.kubeconfig is not None:
        credentials = credentials_.from_kubeconfig(said.kubeconfig, said.context)
    else:
        credentials = credentials_.in_cluster(root, environ)
    namespace = said.namespace or credentials.namespace
    if not namespace:
        raise UsageError(f"the operator's namespace is not known; set {names.ENV_NAMESPACE} or give --namespace")
    return credentials, namespace
