"""Bringing our objects to what they should be, and removing those that should not be. Called by the controller's passes.

Writes only what differs from the live object, so that a pass with nothing to do costs no request at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest, ObjectKey
from gpushare.errors import ClusterUnavailable, GpuShareError
from gpushare.kube import comparing, ownership
from gpushare.kube.cluster import Cluster, PatchType

_Item = TypeVar("_Item")


def _is_ours(live: Manifest) -> bool:
    labels = live["metadata"].get("labels") or {}
    return labels.get(names.LABEL_MANAGED_BY) == names.CONTROLLER


@dataclass(slots=True)
class Applier:
    """Applies manifests as one field manager. Remembers what it applied, unlike the plain `Cluster.apply`.

    The memory is for what the server stores otherwise than we write it: such an object never compares equal, and without
    memory it would be written in every pass.
    """

    cluster: Cluster
    manager: str
    _settled: dict[ObjectKey, tuple[Manifest, Manifest]] = field(default_factory=dict)
    """What we applied, and what the server made of it, both without what the server counts."""

    def is_settled(self, wanted: Manifest, live: Manifest | None) -> bool:
        """Whether there is nothing to write."""
        if live is None:
            return False
        if comparing.holds(live, wanted):
            return True
        return self._settled.get(manifests.key_of(wanted)) == (wanted, comparing.essence_of(live))

    async def apply(self, wanted: Sequence[Manifest], live: Mapping[ObjectKey, Manifest]) -> tuple[Manifest, ...]:
        """Applies in the given order what is not as wanted. Returns what the server made of what was written.

        Forced: whoever else wrote to a field that we want otherwise loses it. Whether an object is ours at all is decided
        before; one that somebody else has made loses everything that is not in ours.
        """
        written = []
        for manifest in wanted:
            key = manifests.key_of(manifest)
            if self.is_settled(manifest, live.get(key)):
                continue
            if key in live and not _is_ours(live[key]):
                await self._take_over(key)
            result = await self.cluster.apply(manifest, manager=self.manager, force=True)
            self._settled[key] = (manifest, comparing.essence_of(result))
            written.append(result)
        return tuple(written)

    async def _take_over(self, key: ObjectKey) -> None:
        """Counts as ours what others have written into an object, so that applying removes what we do not have.

        Else a DaemonSet of NVIDIA's operator would keep its side-cars beside our container.
        """
        found = await self.cluster.list(key.kind, key.namespace, fields=f"metadata.name={key.name}")
        for manifest in found.items:
            metadata = manifest["metadata"]
            steps = [
                # Replaced rather than tested: where somebody was quicker the answer is a conflict then, not "invalid".
                {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]},
                {
                    "op": "replace",
                    "path": "/metadata/managedFields",
                    "value": ownership.inherit(manifest, self.manager),
                },
            ]
            if metadata.get("managedFields"):
                await self.cluster.patch(key.kind, key.name, steps, key.namespace, patch_type=PatchType.JSON)

    async def prune(self, doomed: Mapping[ObjectKey, str]) -> tuple[ObjectKey, ...]:
        """Deletes objects by key and uid, in the given order; of another uid, it is not ours. Returns what was there."""
        gone = []
        for key, uid in doomed.items():
            self._settled.pop(key, None)
            if await self.cluster.delete(key.kind, key.name, key.namespace, uid=uid):
                gone.append(key)
        return tuple(gone)


async def each(
    items: Iterable[_Item], write: Callable[[_Item], Awaitable[object]], *, concurrency: int = 16
) -> tuple[GpuShareError, ...]:
    """Runs `write` for all items, some at a time. Returns the failures; one of them keeps nobody else from being written.

    Except where the server is away, which is not tried thousands of times: then the rest is left for the next pass.
    """
    failures: list[GpuShareError] = []
    unreachable = 0
    queue = iter(items)

    async def work() -> None:
        nonlocal unreachable
        for item in queue:
            try:
                await write(item)
            except GpuShareError as error:
                failures.append(error)
                unreachable += isinstance(error, ClusterUnavailable)
            if unreachable >= concurrency:
                return

    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(work())
    return tuple(failures)
