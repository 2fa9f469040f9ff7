"""What an administrator would have done before the first configuration: namespace, CRDs, controller, scheduler, a policy.

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
from gpushare.sandbox import scheduling
from gpushare.sandbox.scheduling import Profile

NAMESPACE = "gpu-operator"
POLICY = "cluster-policy"
IMAGE = f"{names.IMAGE}:{__version__}"
_FIELD_MANAGER = "gpushare-sandbox"
_NOT_SERVED_YET = 404
_PAUSE = 0.01


async def install_definitions(cluster: Cluster) -> None:
    """The namespace and the CRDs; returns when the kinds are served."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    await _apply(cluster, [namespace, *templates.read_definitions()])
    for kind in (manifests.CLUSTER_POLICY, manifests.GPU_NODE):
        while not await _is_served(cluster, kind):  # noqa: ASYNC110 - a real server serves a kind some ms after it says so
            await asyncio.sleep(_PAUSE)


async def install_operator(cluster: Cluster) -> None:
    """The policy, and the controller with its rights."""
    await _apply(cluster, _read(data.path_of("examples").glob("00-*/*.yaml")))
    controller = templates.render("controller", {"namespace": NAMESPACE, "image": IMAGE})
    for manifest in controller:
        if manifest["kind"] == "Deployment":
            # As the chart's value `fractions.hamiNodeLabel` has it: a label is all that it takes to try the dialect of HAMi.
            manifest["spec"]["template"]["spec"]["containers"][0]["args"].append("--hami-node-label=true")
    await _apply(cluster, controller)


async def install_scheduler(cluster: Cluster) -> None:
    """The scheduler of fractions, its rights, and the webhook by which pods come to it."""
    await _apply(cluster, _render_scheduler())


def read_profiles() -> tuple[Profile, ...]:
    """Whom pods are given to: the default scheduler, and the one that asks `gpushare scheduler`, as it is installed."""
    maps = (each for each in _render_scheduler() if each["kind"] == "ConfigMap")
    (configuration,) = next(maps)["data"].values()
    (parsed,) = templates.parse(configuration)
    return (Profile(), *scheduling.read_profiles(parsed))


def _render_scheduler() -> list[Manifest]:
    url = f"https://{names.SCHEDULER}.{NAMESPACE}.svc:443"
    return templates.render("scheduler", {"namespace": NAMESPACE, "image": IMAGE, "url": url})


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
