"""Where the commands about clusters find theirs, and how they read from it. Nothing here writes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import click

from gpushare.domain import manifests
from gpushare.domain.gpunode import GPUNode
from gpushare.domain.manifests import Kind, Manifest
from gpushare.errors import ClusterRefused, UsageError
from gpushare.kube.cluster import Cluster
from gpushare.kube.credentials import Credentials, from_kubeconfig
from gpushare.kube.lean import LeanCluster

_NO_SUCH_KIND: Final = 404
KUBECONFIG = click.option(
    "--kubeconfig", type=click.Path(dir_okay=False, path_type=Path),
    help="Which cluster; default: $KUBECONFIG, else ~/.kube/config.",
)  # fmt: skip

FILES = click.option(
    "--file", "-f", "files", multiple=True, metavar="FILE",
    help="In place of a cluster: what `kubectl get nodes,gpunodes,pods -A -o yaml` printed; - is standard input. May be given "
    "several times.",
)  # fmt: skip


class NotJudged(click.ClickException):
    """What was to be looked at cannot be read. Not 1, which is a verdict."""

    exit_code = 2


def read_credentials(kubeconfig: Path | None) -> Credentials:
    """Who we are and where, as kubectl finds it. Of a list of files in $KUBECONFIG the first one that exists counts.

    Raises:
        UsageError: there is no kubeconfig, or it cannot be used.
    """
    if kubeconfig is None:
        listed = [Path(name) for name in os.environ.get("KUBECONFIG", "").split(os.pathsep) if name]
        kubeconfig = next((path for path in listed if path.exists()), None)
        if kubeconfig is None and listed:
            # Never that of the home folder, which is of another cluster than the one that was meant.
            raise UsageError(
                f"$KUBECONFIG names {listed[0]}, which is not there; a sandbox takes its file along when it ends"
            )
    usual = Path.home() / ".kube" / "config"
    if kubeconfig is None and not usual.exists():
        raise UsageError(f"no cluster is named: there is no {usual}; set $KUBECONFIG, or give --kubeconfig")
    return from_kubeconfig(kubeconfig or usual)


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


async def read_objects(
    kubeconfig: Path | None, kinds: Iterable[tuple[Kind, str]], namespace: str
) -> tuple[Manifest, ...]:
    """All objects of these kinds, each with a selector of labels; the namespaced ones of one namespace.

    Of kinds that the server does not know there are none: the cluster has not got the operator yet.

    Raises:
        UsageError: no kubeconfig that can be used.
        GpuShareError: the cluster cannot be reached, or refuses.
    """
    async with connect(kubeconfig) as cluster:
        # Config maps of all namespaces: people create theirs elsewhere, and are told so.
        scopes = ((kind, "" if kind == manifests.CONFIG_MAP else namespace, labels) for kind, labels in kinds)
        lists = await asyncio.gather(*(_list(cluster, *scope) for scope in scopes))
    return tuple(manifest for found in lists for manifest in found)


async def _list(cluster: Cluster, kind: Kind, namespace: str, labels: str) -> tuple[Manifest, ...]:
    try:
        return (await cluster.list(kind, namespace if kind.namespaced else "", labels=labels)).items
    except ClusterRefused as error:
        if error.code == _NO_SUCH_KIND:
            return ()
        raise
