"""Keeps the books up from the cluster: watches of Nodes, GPUNodes, pods and ResourceQuotas. Run by `running`.

Of each object only what the books need stays in memory: a cluster has tens of thousands of pods, most of them without GPUs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from contextlib import aclosing
from typing import Final

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.gpunode import AGENT_READY, GPUNode
from gpushare.domain.manifests import Kind, Manifest
from gpushare.errors import ClusterRefused, ClusterUnavailable
from gpushare.kube.cluster import Cluster, EventType, Trim
from gpushare.kube.watching import Synced, follow
from gpushare.scheduler import pods
from gpushare.scheduler.books import Books
from gpushare.scheduler.limits import Limits
from gpushare.scheduler.pods import SeenPod

_KINDS: Final = (manifests.NODE, manifests.GPU_NODE, manifests.POD, manifests.RESOURCE_QUOTA)
_DEVICE_FIELDS: Final = (
    "index",
    "uuid",
    "product",
    "memoryMiB",
    "numaNode",
    "health",
    "migEnabled",
    "closeness",
    "computeCapability",
)
_RETRY_SECONDS: Final = 1.0


class Following:
    """The watches of one scheduler."""

    def __init__(
        self, cluster: Cluster, books: Books, limits: Limits, resources: Collection[str], log: logging.Logger
    ) -> None:
        """`resources`: names by which pods ask for GPUs."""
        self._cluster = cluster
        self._books = books
        self._limits = limits
        self._resources = frozenset(resources)
        self._log = log
        self._seen = {kind: asyncio.Event() for kind in _KINDS}
        self._again: asyncio.Queue[str] = asyncio.Queue()
        """GPUNodes that are to be read again."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Kinds of which not everything that exists has been seen yet, by plural name."""
        return tuple(kind.plural for kind, seen in self._seen.items() if not seen.is_set())

    async def wait(self) -> None:
        """Returns once everything that exists has been seen."""
        for seen in self._seen.values():
            await seen.wait()

    async def run(self) -> None:
        """Follows until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(manifests.NODE, _trim_node, self._sync_nodes, self._see_node))
            group.create_task(self._follow_gpu_nodes())
            group.create_task(self._read_again())
            group.create_task(self._follow(manifests.POD, self._trim_pod, self._sync_pods, self._see_pod, pods.BOUND))
            group.create_task(self._follow(manifests.RESOURCE_QUOTA, _trim_quota, self._limits.sync, self._limits.see))

    async def catch_up(self, changed_hands: bool) -> None:  # noqa: FBT001 - the shape of `Leading.prepare`
        """Returns once all is known that a leader must know. A watch may not have told yet of the last pod that another bound.

        Raises:
            ClusterUnavailable: as `Cluster.list`.
            ClusterRefused: as `Cluster.list`.
        """
        await self.wait()
        if not changed_hands:
            return
        listed = await self._cluster.list(manifests.POD, fields=pods.BOUND, trim=self._trim_pod)
        for pod in listed.items:
            self._books.see_pod(SeenPod.of(pod))

    async def _follow(
        self,
        kind: Kind,
        trim: Trim,
        sync: Callable[[Iterable[Manifest]], None],
        see: Callable[[Manifest, bool], None],
        fields: str = "",
    ) -> None:
        async with aclosing(follow(self._cluster, kind, fields=fields, trim=trim, log=self._log)) as changes:
            async for change in changes:
                if isinstance(change, Synced):
                    sync(change.items)
                    self._seen[kind].set()
                else:
                    see(change.event.object, change.event.type is EventType.DELETED)

    async def _follow_gpu_nodes(self) -> None:
        # Little of a GPUNode is kept, so what its Node says of its GPUs comes first.
        await self._seen[manifests.NODE].wait()
        await self._follow(manifests.GPU_NODE, _trim_gpu_node, self._sync_gpu_nodes, self._see_gpu_node)

    async def _read_again(self) -> None:
        while True:
            name = await self._again.get()
            try:
                found = await self._cluster.get(manifests.GPU_NODE, name)
            except (ClusterUnavailable, ClusterRefused) as error:
                self._log.warning("cannot read a GPUNode again", extra={"node": name, "reason": str(error)})
                await asyncio.sleep(_RETRY_SECONDS)
                self._again.put_nowait(name)
                continue
            if found is not None:
                self._see_gpu_node(found, False)

    def _sync_nodes(self, nodes: Iterable[Manifest]) -> None:
        found = {node["metadata"]["name"]: node["metadata"]["annotations"] for node in nodes}
        for name in self._books.annotated - found.keys():
            self._note(name, {})
        for name, kept in found.items():
            self._note(name, kept)

    def _see_node(self, node: Manifest, gone: bool) -> None:  # noqa: FBT001 - the shape of `see`
        metadata = node["metadata"]
        self._note(metadata["name"], {} if gone else metadata["annotations"])

    def _note(self, node: str, annotations: dict[str, str]) -> None:
        if self._books.see_annotations(node, annotations):
            self._again.put_nowait(node)

    def _sync_gpu_nodes(self, nodes: Iterable[Manifest]) -> None:
        self._books.sync_gpu_nodes(map(GPUNode.from_json, nodes))

    def _see_gpu_node(self, node: Manifest, gone: bool) -> None:  # noqa: FBT001 - the shape of `see`
        if gone:
            self._books.drop_gpu_node(node["metadata"]["name"])
        else:
            self._books.see_gpu_node(GPUNode.from_json(node))

    def _trim_pod(self, pod: Manifest) -> Manifest | None:
        return pods.trim(pod, self._resources)

    def _sync_pods(self, found: Iterable[Manifest]) -> None:
        self._books.sync_pods(map(SeenPod.of, found))

    def _see_pod(self, pod: Manifest, gone: bool) -> None:  # noqa: FBT001 - the shape of `see`
        if gone:
            self._books.drop_pod(pod["metadata"]["uid"])
        else:
            self._books.see_pod(SeenPod.of(pod))


def _trim_node(node: Manifest) -> Manifest:
    """The name, and the annotation by which people take GPUs out of scheduling."""
    annotations = node["metadata"].get("annotations") or {}
    kept = {name: annotations[name] for name in (names.ANNOTATION_CORDON,) if name in annotations}
    return {"metadata": {"name": node["metadata"]["name"], "annotations": kept}}


def _trim_gpu_node(node: Manifest) -> Manifest:
    """What `GPUNode` reads of it, without texts and figures that nothing here is decided by."""
    status = node.get("status") or {}
    config = (node.get("spec") or {}).get("config")
    kept = {name: status[name] for name in ("appliedRevision", "fractions", "allocations") if name in status}
    if status.get("fractions"):
        kept["devices"] = [
            {name: device[name] for name in _DEVICE_FIELDS if name in device} for device in status.get("devices", ())
        ]
    kept["conditions"] = [each for each in status.get("conditions", ()) if each.get("type") == AGENT_READY]
    return {
        "metadata": {"name": node["metadata"]["name"]},
        "spec": {"config": config} if config else {},
        "status": kept,
    }


def _trim_quota(quota: Manifest) -> Manifest:
    metadata = quota["metadata"]
    return {
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
        "spec": {"hard": (quota.get("spec") or {}).get("hard") or {}},
    }
