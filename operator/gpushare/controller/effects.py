"""Carrying out a plan: each part of it, one request a change. Called by `reconciling`.

What is written is seen at once in the store, ahead of the watch, so that the next pass does not write it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from gpushare import names
from gpushare.controller.snapshotting import Store
from gpushare.domain import gpunode, manifests
from gpushare.domain.manifests import Manifest, ObjectKey
from gpushare.errors import GpuShareError
from gpushare.kube import applying
from gpushare.kube.applying import Applier
from gpushare.kube.cluster import Cluster
from gpushare.plan.components import Component
from gpushare.plan.fleet import GPUNodeConditions, GPUNodeRemoval, GPUNodeSpec
from gpushare.plan.nodes import NodeLabels
from gpushare.plan.snapshot import LiveObject
from gpushare.plan.status import PolicyStatus

_AT_ONCE = 24
"""Writes in flight: an API server answers that many from one client without putting them in a queue."""

Failures = tuple[GpuShareError, ...]
"""What did not work. One write that fails keeps no other from being tried."""


class Effects:
    """The hands of the controller. Every method takes one part of a plan and returns what failed."""

    def __init__(self, cluster: Cluster, store: Store, render: Callable[[Component], Sequence[Manifest]]) -> None:
        self._cluster = cluster
        self._store = store
        self._render = render
        self._applier = Applier(cluster, names.MANAGER_CONTROLLER)

    async def apply_components(self, components: Iterable[Component]) -> dict[str, GpuShareError]:
        """Brings the objects of each component to what they should be. Failures by component."""
        failures: dict[str, GpuShareError] = {}
        for component in components:
            try:
                for written in await self._applier.apply(self._render(component), self._store.live):
                    self._store.see_written(written)
            except GpuShareError as error:
                failures[component.name] = error
        return failures

    async def assign(self, specs: Iterable[GPUNodeSpec]) -> Failures:
        """Gives nodes their configurations."""

        async def write(spec: GPUNodeSpec) -> None:
            await self._apply(gpunode.assignment_manifest(spec.name, spec.node_uid, spec.config), force=True)

        return await applying.each(specs, write, concurrency=_AT_ONCE)

    async def set_conditions(self, conditions: Iterable[GPUNodeConditions]) -> Failures:
        """Says on each GPUNode what is to be said of its assignment and of its agent."""

        async def write(item: GPUNodeConditions) -> None:
            manifest = gpunode.conditions_manifest(item.name, item.conditions)
            await self._apply(manifest, force=True, subresource="status")

        return await applying.each(conditions, write, concurrency=_AT_ONCE)

    async def label(self, changes: Iterable[NodeLabels]) -> Failures:
        """Writes our labels on nodes, and takes back those that are ours no longer."""

        async def write(change: NodeLabels) -> None:
            metadata = {"name": change.name, "uid": change.uid, "labels": dict(change.labels)}
            if change.resource_version:
                metadata["resourceVersion"] = change.resource_version
            kind = manifests.NODE
            manifest = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
            await self._apply(manifest, force=change.force)

        return await applying.each(changes, write, concurrency=_AT_ONCE)

    async def prune(self, doomed: Iterable[LiveObject]) -> Failures:
        """Deletes what is no longer wanted, in the given order."""
        failures: list[GpuShareError] = []
        for item in doomed:
            try:
                await self._applier.prune({item.key: item.uid})
                self._store.see_deleted(item.key)
            except GpuShareError as error:
                failures.append(error)
        return tuple(failures)

    async def remove_gpu_nodes(self, removals: Iterable[GPUNodeRemoval]) -> Failures:
        """Deletes GPUNodes whose nodes we serve no longer."""

        async def write(removal: GPUNodeRemoval) -> None:
            await self._cluster.delete(manifests.GPU_NODE, removal.name, uid=removal.uid)
            self._store.see_deleted(ObjectKey(manifests.GPU_NODE, removal.name))

        return await applying.each(removals, write, concurrency=_AT_ONCE)

    async def report(self, status: PolicyStatus) -> None:
        """Writes the status of a policy. Raises Conflict where another policy has its name meanwhile."""
        body = {"metadata": {"uid": status.uid}, "status": status.to_json()}
        written = await self._cluster.patch(manifests.CLUSTER_POLICY, status.name, body, subresource="status")
        if written is not None:
            self._store.see_written(written)

    async def _apply(self, manifest: Manifest, *, force: bool, subresource: str = "") -> None:
        written = await self._cluster.apply(
            manifest, manager=names.MANAGER_CONTROLLER, force=force, subresource=subresource
        )
        self._store.see_written(written)
