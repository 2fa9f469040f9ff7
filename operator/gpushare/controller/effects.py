"""Carrying out a plan: each part of it, one request a change. Called by `reconciling`.

What is written is seen at once in the store, ahead of the watch, so that the next pass does not write it again. And it is
logged, one line for all objects of a kind that a pass has written; who changes nothing says nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from gpushare import names
from gpushare.controller import tainting
from gpushare.controller.contending import Contention
from gpushare.controller.snapshotting import Store
from gpushare.domain import gpunode, manifests
from gpushare.domain.manifests import Manifest, ObjectKey
from gpushare.errors import GpuShareError
from gpushare.kube import applying
from gpushare.kube.applying import Applier
from gpushare.kube.cluster import Cluster
from gpushare.plan import reading, rollouts, wording
from gpushare.plan.components import Component
from gpushare.plan.fleet import GPUNodeConditions, GPUNodeRemoval, GPUNodeSpec
from gpushare.plan.nodes import NodeLabels
from gpushare.plan.snapshot import LiveObject
from gpushare.plan.status import PolicyStatus
from gpushare.plan.taints import NodeTaint

_OBJECT_TIMES = 5
"""So often an object is put right within ten minutes; people who try out what happens do not go on for longer."""
_AT_ONCE = 24
"""Writes in flight: an API server answers that many from one client without putting them in a queue."""

Failures = tuple[GpuShareError, ...]
"""What did not work. One write that fails keeps no other from being tried."""


class _OfNode(Protocol):
    @property
    def name(self) -> str: ...


_Item = TypeVar("_Item", bound=_OfNode)


class Effects:
    """The hands of the controller. Every method takes one part of a plan and returns what failed."""

    def __init__(
        self,
        cluster: Cluster,
        store: Store,
        render: Callable[[Component], Sequence[Manifest]],
        log: logging.Logger,
    ) -> None:
        self._cluster = cluster
        self._store = store
        self._render = render
        self._log = log
        self._applier = Applier(cluster, names.MANAGER_CONTROLLER)
        self._contention = Contention[tuple[str, str]](time.monotonic)
        """Of labels, by uid of the Node."""
        self._object_contention = Contention[ObjectKey](time.monotonic, times=_OBJECT_TIMES)
        self._hashes: dict[ObjectKey, str] = {}
        """Of what was written last."""

    async def apply_components(self, components: Iterable[Component]) -> dict[str, GpuShareError]:
        """Brings the objects of each component to what they should be. Failures by component."""
        failures: dict[str, GpuShareError] = {}
        for component in components:
            try:
                written = await self._applier.apply(self._render(component), self._store.live)
                self._count_objects(written)
            except GpuShareError as error:
                failures[component.name] = error
                continue
            for manifest in written:
                self._store.see_written(manifest)
            if written:
                objects = ", ".join(str(manifests.key_of(manifest)) for manifest in written)
                self._log.info("objects applied", extra={"component": component.name, "objects": objects})
        return failures

    async def secure_namespace(self, labels: Mapping[str, str] | None) -> Failures:
        """Labels our namespace; with None, nothing is to be done."""
        if labels is None:
            return ()
        kind, metadata = manifests.NAMESPACE, {"name": self._store.settings.namespace, "labels": dict(labels)}
        manifest = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
        try:
            written = await self._cluster.apply(manifest, manager=names.MANAGER_CONTROLLER, force=True)
        except GpuShareError as error:
            return (error,)
        self._store.pod_security = reading.pod_security_of(written)
        self._log.info("namespace labelled", extra={"labels": ", ".join(labels) or "none"})
        return ()

    async def assign(self, specs: Iterable[GPUNodeSpec]) -> Failures:
        """Gives nodes their configurations."""

        async def write(spec: GPUNodeSpec) -> None:
            await self._apply(gpunode.assignment_manifest(spec.name, spec.node_uid, spec.config), force=True)

        done, failures = await _each(specs, write)
        configs = wording.listed({rollouts.title_of(spec.config) for spec in done})
        self._tell("configurations assigned", done, configs=configs)
        return failures

    async def set_conditions(self, conditions: Iterable[GPUNodeConditions]) -> Failures:
        """Says on each GPUNode what is to be said of its assignment and of its agent."""

        async def write(item: GPUNodeConditions) -> None:
            manifest = gpunode.conditions_manifest(item.name, item.conditions)
            await self._apply(manifest, force=True, subresource="status")

        done, failures = await _each(conditions, write)
        self._tell("conditions of gpunodes written", done)
        return failures

    async def label(self, changes: Iterable[NodeLabels]) -> Failures:
        """Writes our labels on nodes, and takes back those that are ours no longer."""

        async def write(change: NodeLabels) -> None:
            metadata: dict[str, object] = {"name": change.name, "uid": change.uid, "labels": dict(change.labels)}
            if change.opted_out:
                metadata["annotations"] = {names.ANNOTATION_OPTED_OUT: ",".join(sorted(change.opted_out))}
            if change.resource_version:
                metadata["resourceVersion"] = change.resource_version
            kind = manifests.NODE
            manifest = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
            await self._apply(manifest, force=change.force)
            self._count_labels(change)

        done, failures = await _each(changes, write)
        self._tell("nodes labelled", done, removed=wording.listed({key for change in done for key in change.removed}))
        return failures

    def _count_labels(self, change: NodeLabels) -> None:
        for key in (*change.removed, *(names.LABEL_DEPLOY_PREFIX + component for component in change.opted_out)):
            self._contention.forget((change.uid, key))
        for key in change.claimed if change.is_known else ():
            self._contention.claim((change.uid, key))

    def _count_objects(self, written: Iterable[Manifest]) -> None:
        """Written again though nothing else is wanted: somebody has changed or deleted it."""
        for manifest in written:
            key, wanted = manifests.key_of(manifest), manifest["metadata"]["annotations"][names.ANNOTATION_HASH]
            if self._hashes.get(key) == wanted:
                self._object_contention.claim(key)
            self._hashes[key] = wanted

    def see_contention(self) -> None:
        """Tells the store what is to be left to others by now. To be called before each pass, since that ends by itself."""
        self._store.lost_objects = self._object_contention.left()
        lost: dict[str, set[str]] = {}
        for uid, key in self._contention.left():
            lost.setdefault(uid, set()).add(key)
        self._store.lost_labels = {uid: frozenset(keys) for uid, keys in lost.items()}

    async def taint(self, changes: Iterable[NodeTaint]) -> Failures:
        """Sets our taint on nodes, and takes it away."""

        async def write(change: NodeTaint) -> None:
            written = await tainting.set_taint(self._cluster, change.name, change.uid, present=change.present)
            if written is not None:
                self._store.see_written(written)

        done, failures = await _each(changes, write)
        self._tell("nodes tainted", [change for change in done if change.present])
        self._tell("taint removed", [change for change in done if not change.present])
        return failures

    async def prune(self, doomed: Iterable[LiveObject]) -> Failures:
        """Deletes what is no longer wanted, in the given order."""
        failures: list[GpuShareError] = []
        gone: list[str] = []
        for item in doomed:
            try:
                await self._applier.prune({item.key: item.uid})
            except GpuShareError as error:
                failures.append(error)
            else:
                self._store.see_deleted(item.key)
                self._hashes.pop(item.key, None)
                gone.append(str(item.key))
        if gone:
            self._log.info("objects removed", extra={"objects": ", ".join(gone)})
        return tuple(failures)

    async def remove_gpu_nodes(self, removals: Iterable[GPUNodeRemoval]) -> Failures:
        """Deletes GPUNodes whose nodes we serve no longer."""

        async def write(removal: GPUNodeRemoval) -> None:
            await self._cluster.delete(manifests.GPU_NODE, removal.name, uid=removal.uid)
            self._store.see_deleted(ObjectKey(manifests.GPU_NODE, removal.name))

        done, failures = await _each(removals, write)
        self._tell("gpunodes removed", done)
        return failures

    async def report(self, status: PolicyStatus) -> None:
        """Writes the status of a policy. Raises Conflict where another policy has its name meanwhile."""
        body = {"metadata": {"uid": status.uid}, "status": status.to_json()}
        written = await self._cluster.patch(manifests.CLUSTER_POLICY, status.name, body, subresource="status")
        if written is not None:
            self._store.see_written(written)
            self._log.info("status of policy written", extra={"policy": status.name, "state": status.state})

    def _tell(self, what: str, done: Sequence[_OfNode], **about: str) -> None:
        if done:
            nodes = wording.listed([item.name for item in done])
            said = {key: value for key, value in about.items() if value}
            self._log.info(what, extra={"count": len(done), "nodes": nodes, **said})

    async def _apply(self, manifest: Manifest, *, force: bool, subresource: str = "") -> None:
        written = await self._cluster.apply(
            manifest, manager=names.MANAGER_CONTROLLER, force=force, subresource=subresource
        )
        self._store.see_written(written)


async def _each(items: Iterable[_Item], write: Callable[[_Item], Awaitable[None]]) -> tuple[Sequence[_Item], Failures]:
    """Writes all items, many at a time. Returns those that were written, and what failed."""
    done: list[_Item] = []

    async def write_one(item: _Item) -> None:
        await write(item)
        done.append(item)

    failures = await applying.each(items, write_one, concurrency=_AT_ONCE)
    return done, failures
