"""A cluster that somebody else runs, where KUBECONFIG names one: for tests that need nothing but an API server."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpushare import names
from support.real_cluster.kubectl import Kubectl


class GivenCluster:
    """As much of `RealCluster` as simulated nodes need."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        """`folder`: for what programs write."""
        self._kubeconfig = kubeconfig
        self.logs = folder
        self.kubectl = Kubectl(kubeconfig)

    def kubeconfig(self) -> Path:
        """For whoever runs on this machine."""
        return self._kubeconfig

    def kubeconfig_in_network(self) -> Path:
        """For whoever runs where the API server is, which is the same here."""
        return self._kubeconfig

    def command_in_network(self, *command: str | Path) -> list[str]:
        """The command line of a program that the API server reaches."""
        return list(map(str, command))

    def check(self) -> None:
        """Refuses a cluster that shares GPUs already: the tests would take its policy away."""
        if self.kubectl.answers("get", "crd", f"clusterpolicies.{names.GROUP_NVIDIA}"):
            pytest.fail(
                "KUBECONFIG names a cluster that has ClusterPolicies already: the tests would change it", pytrace=False
            )
