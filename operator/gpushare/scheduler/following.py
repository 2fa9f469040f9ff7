"""Keeps the books up from the cluster: watches of Nodes, GPUNodes, pods and ResourceQuotas. Run by `running`.

Of each object only what the books need stays in memory: a cluster has tens of thousands of pods, most of them without GPUs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from contextlib import aclosing
from dataclasses import dataclass
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
_AT_ONCE: Final = 100


@dataclass(frozen=True, slots=True)
class _Watched:
    """A kind, and what is done with its objects."""

    kind: Kind
    trim: Trim
    see: Callable[[Manifest, bool], None]
    """Takes one, or that it is gone."""
    drop_others: Callable[[AbstractSet[str]], None]
    """Hears of all that exist, as `key_of` names them."""
    fields: str = ""


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
        self._gpu_nodes = _Watched(manifests.GPU_NODE, _trim_gpu_node, self._see_gpu_node, books.drop_other_gpu_nodes)
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
        books, limits = self._books, self._limits
        async with asyncio.TaskGroup() as group:
            group.create_task(
                self._follow(_Watched(manifests.NODE, _trim_node, self._see_node, self._drop_other_nodes))
            )
            group.create_task(self._follow_gpu_nodes())
            group.create_task(self._read_again())
            watched = _Watched(manifests.POD, self._trim_pod, self._see_pod, books.drop_other_pods, pods.BOUND)
            group.create_task(self._follow(watched))
            group.create_task(
                self._follow(_Watched(manifests.RESOURCE_QUOTA, _trim_quota, limits.see, limits.drop_others))
            )

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

    async def _follow(self, watched: _Watched) -> None:
        stream = follow(self._cluster, watched.kind, fields=watched.fields, trim=watched.trim, log=self._log)
        async with aclosing(stream) as changes:
            async for change in changes:
                if isinstance(change, Synced):
                    await self._sync(watched, change.items)
                    self._seen[watched.kind].set()
                else:
                    self._see(watched, change.event.object, gone=change.event.type is EventType.DELETED)

    async def _sync(self, watched: _Watched, items: Sequence[Manifest]) -> None:
        for position, item in enumerate(items):
            self._see(watched, item, gone=False)
            if position % _AT_ONCE == 0:
                # Whoever asks meanwhile is answered, be it from books that are half-way between two lists.
                await asyncio.sleep(0)
        watched.drop_others({key_of(item) for item in items})

    def _see(self, watched: _Watched, item: Manifest, *, gone: bool) -> None:
        try:
            watched.see(item, gone)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            # Written by another version, or by hand. One that cannot be read must not keep the others from being served.
            name = item["metadata"]["name"]
            self._log.warning(
                "object cannot be read", extra={"kind": watched.kind.kind, "object": name, "reason": str(error)}
            )
            if watched.kind == manifests.GPU_NODE:
                self._books.drop_gpu_node(name)

    async def _follow_gpu_nodes(self) -> None:
        # Little of a GPUNode is kept, so what its Node says of its GPUs comes first.
        await self._seen[manifests.NODE].wait()
        await self._follow(self._gpu_nodes)

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
            # It may have gone meanwhile, and nobody would tell so again.
            if found is not None and name in self._books.nodes:
                self._see(self._gpu_nodes, found, gone=False)

    def _see_node(self, node: Manifest, gone: bool) -> None:  # noqa: FBT001 - the shape of `see`
        metadata = node["metadata"]
        self._note(metadata["name"], {} if gone else metadata["annotations"])

    def _note(self, node: str, annotations: dict[str, str]) -> None:
        if self._books.see_annotations(node, annotations):
            self._again.put_nowait(node)

    def _drop_other_nodes(self, existing: AbstractSet[str]) -> None:
        for name in self._books.annotated - existing:
            self._note(name, {})

    def _see_gpu_node(self, node: Manifest, gone: bool) -> None:  # noqa: FBT001 - the shape of `see`
        if gone:
            self._books.drop_gpu_node(node["metadata"]["name"])
        else:
            self._books.see_gpu_node(GPUNode.from_json(node))

    def _trim_pod(self, pod: Manifest) -> Manifest | None:
        return pods.trim(pod, self._resources)

    def _see_pod(self, pod: Manifest, gone: bool) -> None:  # noqa: FBT001 - the shape of `see`
        if gone:
            self._books.end_pod(pod["metadata"]["uid"])
        else:
            self._books.see_pod(SeenPod.of(pod))


def key_of(trimmed: Manifest) -> str:
    """What `drop_others` of each kind knows an object by: the uid of a pod, the name of anything else."""
    metadata = trimmed["metadata"]
    namespace = metadata.get("namespace", "")
    return str(metadata.get("uid") or (f"{namespace}/{metadata['name']}" if namespace else metadata["name"]))


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
