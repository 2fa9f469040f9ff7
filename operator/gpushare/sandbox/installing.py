"""What an administrator would have done before the first configuration: namespace, CRDs, the controller, a policy.

Called by `app` on a server of its own. Everything goes through the API, as kubectl or a chart would send it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from gpushare import __version__, data, names
from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.errors import ClusterRefused
from gpushare.kube.cluster import Cluster
from gpushare.render import templates

NAMESPACE = "gpu-operator"
POLICY = "cluster-policy"
IMAGE = f"{names.IMAGE}:{__version__}"
_FIELD_MANAGER = "gpushare-sandbox"
_NOT_SERVED_YET = 404
_PAUSE = 0.01


async def install_definitions(cluster: Cluster) -> None:
    """The namespace and the CRDs; returns when the kinds are served."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    await _apply(cluster, [namespace, *_read(sorted(data.path_of("crds").glob("*.yaml")))])
    for kind in (manifests.CLUSTER_POLICY, manifests.GPU_NODE):
        while not await _is_served(cluster, kind):  # noqa: ASYNC110 - a real server serves a kind some ms after it says so
            await asyncio.sleep(_PAUSE)


async def install_operator(cluster: Cluster) -> None:
    """The policy, and the controller with its rights."""
    await _apply(cluster, _read(data.path_of("examples").glob("00-*/*.yaml")))
    await _apply(cluster, templates.render("controller", {"namespace": NAMESPACE, "image": IMAGE}))


async def _apply(cluster: Cluster, wanted: Iterable[Manifest]) -> None:
    for manifest in wanted:
        await cluster.apply(manifest, manager=_FIELD_MANAGER)


def _read(paths: Iterable[Path]) -> list[Manifest]:
    return [manifest for path in paths for manifest in templates.parse(path.read_text(encoding="utf-8"))]


async def _is_served(cluster: Cluster, kind: manifests.Kind) -> bool:
    try:
        await cluster.list(kind)
    except ClusterRefused as refused:
        if refused.code != _NOT_SERVED_YET:
            raise
        return False
    return True
