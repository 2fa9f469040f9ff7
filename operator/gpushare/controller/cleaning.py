"""Removing from a cluster what the controller has put there, again and again until nothing of it is found. Called by `cleanup`.

What is ours is told by our label on objects and by our field manager on Nodes, never by a name alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from gpushare import names
from gpushare.controller import tainting
from gpushare.domain import manifests
from gpushare.domain.manifests import Kind, Manifest
from gpushare.errors import ClusterRefused, GpuShareError
from gpushare.kube import applying
from gpushare.kube.applying import Applier
from gpushare.kube.cluster import Cluster
from gpushare.plan import components, pruning, reading, wording
from gpushare.plan.snapshot import Node

_PAUSE_SECONDS: Final = 0.5
_NO_SUCH_KIND: Final = 404
_ENDED: Final = frozenset({"Succeeded", "Failed"})
_OF_COMPONENTS: Final = (
    f"{names.LABEL_MANAGED_BY}={names.CONTROLLER},{names.LABEL_COMPONENT} in ({','.join(sorted(components.STATES))})"
)


class Cleaning:
    """One cluster that is to be as if the operator had never been there: but for CRDs, policies and ConfigMaps."""

    def __init__(self, cluster: Cluster, namespace: str, log: logging.Logger) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._log = log
        self.remainder = "everything: nothing was looked for yet"
        """What the last look has found, or why it could not look."""

    async def run(self) -> None:
        """Returns once a look finds nothing. Whatever fails is tried again: the caller decides for how long."""
        while True:
            try:
                found = await self._remove_what_is_found()
            except GpuShareError as error:
                self._tell(str(error))
            else:
                if not found:
                    return
                self._tell(wording.listed(found))
            await asyncio.sleep(_PAUSE_SECONDS)

    def _tell(self, remainder: str) -> None:
        if remainder != self.remainder:
            self._log.info("cleaning up", extra={"found": remainder})
        self.remainder = remainder

    async def _remove_what_is_found(self) -> list[str]:
        # As long as a controller runs, it makes everything anew.
        if running := await self._stop_controller():
            return running
        found = [
            *await self._remove_objects(),
            *await self._remove_gpu_nodes(),
            *await self._remove_labels(),
            *await self._remove_taints(),
            *await self._remove_pod_security(),
        ]
        await self._cluster.delete(manifests.LEASE, names.LEASE, self._namespace)
        return found

    async def _stop_controller(self) -> list[str]:
        """Pods that still run. Scaled down rather than deleted, so that an uninstall that fails can be taken back."""
        scaled = {"spec": {"replicas": 0}}
        await self._cluster.patch(manifests.DEPLOYMENT, names.CONTROLLER, scaled, self._namespace)
        pods = await self._cluster.list(manifests.POD, self._namespace, labels=f"app={names.CONTROLLER}")
        running = (pod for pod in pods.items if (pod.get("status") or {}).get("phase") not in _ENDED)
        return [f"Pod {pod['metadata']['name']}" for pod in running]

    async def _remove_objects(self) -> list[str]:
        lists = [await self._list(kind, self._namespace, labels=_OF_COMPONENTS) for kind in components.KINDS]
        live = [reading.live_object_of(manifest) for items in lists for manifest in items]
        doomed = pruning.build_prune(live, wanted=(), held=())
        await Applier(self._cluster, names.MANAGER_CONTROLLER).prune({item.key: item.uid for item in doomed})
        return [str(item.key) for item in doomed]

    async def _remove_gpu_nodes(self) -> list[str]:
        # Whoever made one: they are of a kind of ours, and go with their nodes anyway.
        found = [manifest["metadata"]["name"] for manifest in await self._list(manifests.GPU_NODE)]

        async def delete(name: str) -> None:
            await self._cluster.delete(manifests.GPU_NODE, name)

        _raise_first(await applying.each(found, delete))
        return [f"GPUNode {name}" for name in found]

    async def _remove_labels(self) -> list[str]:
        nodes = (reading.node_of(manifest) for manifest in await self._list(manifests.NODE))
        labelled = [node for node in nodes if node.owned or node.opted_out]

        async def unlabel(node: Node) -> None:
            # Nothing is applied any more, so the fields that only our field manager has applied go.
            kind, metadata = manifests.NODE, {"name": node.name, "uid": node.uid}
            manifest = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
            await self._cluster.apply(manifest, manager=names.MANAGER_CONTROLLER)

        _raise_first(await applying.each(labelled, unlabel))
        return [f"labels of Node {node.name}" for node in labelled]

    async def _remove_pod_security(self) -> list[str]:
        kind = manifests.NAMESPACE
        namespace = await self._cluster.get(kind, self._namespace)
        if namespace is None or not reading.pod_security_of(namespace):
            return []
        manifest = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": self._namespace}}
        await self._cluster.apply(manifest, manager=names.MANAGER_CONTROLLER)
        return [f"labels of Namespace {self._namespace}"]

    async def _remove_taints(self) -> list[str]:
        nodes = [reading.node_of(manifest) for manifest in await self._list(manifests.NODE)]
        tainted = [node for node in nodes if node.tainted]

        async def untaint(node: Node) -> None:
            await tainting.set_taint(self._cluster, node.name, node.uid, present=False)

        _raise_first(await applying.each(tainted, untaint))
        return [f"taint of Node {node.name}" for node in tainted]

    async def _list(self, kind: Kind, namespace: str = "", *, labels: str = "") -> tuple[Manifest, ...]:
        try:
            return (await self._cluster.list(kind, namespace if kind.namespaced else "", labels=labels)).items
        except ClusterRefused as error:
            if error.code == _NO_SUCH_KIND:  # the CRDs are gone already
                return ()
            raise


def _raise_first(failures: Iterable[GpuShareError]) -> None:
    for failure in failures:
        raise failure
