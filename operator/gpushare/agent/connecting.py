"""How a process on a node finds the two things that it cannot do without: the cluster's API and the driver's library.

Used by the agent and by `gpushare mps`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpushare import names
from gpushare.errors import UsageError
from gpushare.host import driver_roots
from gpushare.host.files import HostFiles

if TYPE_CHECKING:
    from gpushare.kube.cluster import Cluster

_ACCOUNT: Final = "var/run/secrets/kubernetes.io/serviceaccount"


def find_library(driver_root: str | None) -> str:
    """The driver's library in this container now; empty: the loader has to find it.

    `driver_root`: where somebody said that this container sees the driver's root; None: not said.
    """
    files = HostFiles(Path("/"))
    found = driver_roots.find_library(files, driver_roots.find_root(files, driver_root, None))
    return str(found.resolve()) if found is not None else ""


def connect(
    kubeconfig: str, node_name: str, environ: Mapping[str, str], root: Path, log: logging.Logger
) -> Cluster | None:
    """The cluster of this node; None where nobody gave credentials for one: no kubeconfig, no service account.

    Raises:
        UsageError: a kubeconfig that cannot be used, or a cluster without the node's name.
    """
    if not kubeconfig and not _has_account(environ, root):
        log.info("no cluster: neither a kubeconfig nor an account was given")
        return None
    if not node_name:
        raise UsageError(f"the node's name is not known; set {names.ENV_NODE_NAME} or give --node-name")
    # Late: without a cluster, neither TLS nor HTTP is needed.
    from gpushare.kube import credentials
    from gpushare.kube.lean import LeanCluster

    if kubeconfig:
        return LeanCluster(credentials.from_kubeconfig(HostFiles(root).path(kubeconfig)))
    return LeanCluster(credentials.in_cluster(root, environ))


def _has_account(environ: Mapping[str, str], root: Path) -> bool:
    """Whether this is a pod with a service account: one without, as in a static manifest, means that there is no cluster."""
    return "KUBERNETES_SERVICE_HOST" in environ and (root / _ACCOUNT / "token").exists()
