"""Where the commands about clusters find theirs, and how they read from it. Nothing here writes."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import click

from gpushare.domain import manifests
from gpushare.domain.gpunode import GPUNode
from gpushare.errors import UsageError
from gpushare.kube.credentials import Credentials, from_kubeconfig
from gpushare.kube.lean import LeanCluster

KUBECONFIG = click.option(
    "--kubeconfig", type=click.Path(dir_okay=False, path_type=Path),
    help="Which cluster; default: $KUBECONFIG, else ~/.kube/config.",
)  # fmt: skip


def read_credentials(kubeconfig: Path | None) -> Credentials:
    """Who we are and where, as kubectl finds it. Of a list of files in $KUBECONFIG the first one that exists counts.

    Raises:
        UsageError: there is no kubeconfig, or it cannot be used.
    """
    if kubeconfig is None:
        listed = [Path(name) for name in os.environ.get("KUBECONFIG", "").split(os.pathsep) if name]
        kubeconfig = next((path for path in listed if path.exists()), Path.home() / ".kube" / "config")
    return from_kubeconfig(kubeconfig)


@asynccontextmanager
async def connect(kubeconfig: Path | None) -> AsyncIterator[LeanCluster]:
    """A client of the cluster, closed in the end. Raises as `read_credentials`."""
    cluster = LeanCluster(read_credentials(kubeconfig))
    try:
        yield cluster
    finally:
        await cluster.close()


async def read_gpu_node(kubeconfig: Path | None, name: str) -> GPUNode:
    """One node as its agent reports it.

    Raises:
        UsageError: there is no such GPUNode, or no kubeconfig that can be used.
        GpuShareError: the cluster cannot be reached, or refuses.
    """
    async with connect(kubeconfig) as cluster:
        manifest = await cluster.get(manifests.GPU_NODE, name)
    if manifest is None:
        raise UsageError(f"there is no GPUNode {name}: `kubectl get gpunodes` lists those that there are")
    return GPUNode.from_json(manifest)
