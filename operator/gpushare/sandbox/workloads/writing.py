"""What controllers write: objects, statuses, pods with the events about them. Answers go into the caches at once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

from gpushare.domain import manifests
from gpushare.domain.manifests import Kind, Manifest
from gpushare.errors import GpuShareError
from gpushare.kube.cluster import Cluster
from gpushare.sandbox.apiserver.objects import selectors
from gpushare.sandbox.loops import owners
from gpushare.sandbox.loops.caches import Caches
from gpushare.sandbox.loops.recording import Recorder


class Writer:
    """The hand of one controller."""

    def __init__(self, cluster: Cluster, caches: Caches, recorder: Recorder) -> None:
        self._cluster = cluster
        self._caches = caches
        self._recorder = recorder

    async def create(self, manifest: Manifest) -> Manifest:
        """Creates an object of a kind that the controller watches. Raises as `Cluster.create`."""
        return self._seen(await self._cluster.create(manifest))

    async def replace(self, manifest: Manifest) -> Manifest:
        """Writes a changed copy of an object. Raises `Conflict` when the cache was behind."""
        return self._seen(await self._cluster.replace(manifest))

    async def replace_status(self, manifest: Manifest, status: dict[str, Any]) -> None:
        """Writes the status where it differs. Raises `Conflict` when the cache was behind."""
        if manifest.get("status") != status:
            self._seen(await self._cluster.replace({**manifest, "status": status}, subresource="status"))

    async def delete(self, manifest: Manifest) -> None:
        """Deletes this very object, in the background."""
        key = manifests.key_of(manifest)
        uid = manifest["metadata"]["uid"]
        if await self._cluster.delete(key.kind, key.name, key.namespace, uid=uid):
            self._caches.of(key.kind).mark_terminating(manifest)

    async def create_pods(self, owner: Manifest, pods: Iterable[Manifest]) -> None:
        """Creates pods side by side and tells about each. Raises the first failure after all were tried."""
        await _all(self._create_pod(owner, pod) for pod in pods)

    async def delete_pods(self, owner: Manifest, pods: Iterable[Manifest]) -> None:
        """Deletes pods side by side and tells about each. Raises the first failure after all were tried."""
        await _all(self._delete_pod(owner, pod) for pod in pods)

    async def claim(self, owner: Manifest, kind: Kind, candidates: Iterable[Manifest]) -> list[Manifest]:
        """Those candidates that `owner` controls: orphans that its selector takes are adopted, others are let go.

        `candidates`: of the owner's namespace.
        """
        claimed, wanted = [], selectors.parse_object(owner["spec"]["selector"])
        for candidate in candidates:
            is_own = owners.is_controlled_by(candidate, owner)
            is_selected = selectors.holds(wanted, selectors.labels_of(candidate))
            if is_own and is_selected:
                claimed.append(candidate)
            elif is_own:
                await self.replace(_with_owners(candidate, _others(candidate, owner)))
            elif is_selected and owners.is_orphan(candidate):
                references = [*_others(candidate, owner), owners.build_reference(owner, kind)]
                claimed.append(await self.replace(_with_owners(candidate, references)))
        return claimed

    def _seen(self, manifest: Manifest) -> Manifest:
        self._caches.of(manifests.kind_of(manifest)).put(manifest)
        return manifest

    async def _create_pod(self, owner: Manifest, pod: Manifest) -> None:
        try:
            created = await self.create(pod)
        except GpuShareError as error:
            self._recorder.warning(owner, "FailedCreate", f"Error creating: {error}")
            raise
        self._recorder.normal(owner, "SuccessfulCreate", f"Created pod: {created['metadata']['name']}")

    async def _delete_pod(self, owner: Manifest, pod: Manifest) -> None:
        await self.delete(pod)
        self._recorder.normal(owner, "SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}")


async def _all(jobs: Iterable[Coroutine[Any, Any, None]]) -> None:
    for outcome in await asyncio.gather(*jobs, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


def _others(manifest: Manifest, owner: Manifest) -> list[dict[str, Any]]:
    references = manifest["metadata"].get("ownerReferences") or []
    return [reference for reference in references if reference["uid"] != owner["metadata"]["uid"]]


def _with_owners(manifest: Manifest, references: list[dict[str, Any]]) -> Manifest:
    return {**manifest, "metadata": {**manifest["metadata"], "ownerReferences": references}}
