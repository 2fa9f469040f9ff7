"""The cluster as the watches tell it, kept as slim values. Written by `handlers`, read by each pass of `reconciling`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.manifests import Kind, Manifest, ObjectKey
from gpushare.kube import comparing
from gpushare.plan import components, reading
from gpushare.plan.snapshot import LiveObject, Node, Settings, Snapshot


@dataclass(frozen=True, slots=True)
class Watched:
    """A kind that we watch, and what we keep of an object of it."""

    kind: Kind
    read: Callable[[Manifest], Any]
    """Gives the slim value, or None for an object that does not count."""
    labels: str = ""
    """Selector on the server's side."""


WATCHED = (
    Watched(manifests.CLUSTER_POLICY, reading.policy_of),
    Watched(manifests.CONFIG_MAP, reading.config_map_of),
    # All Nodes: whether one has GPUs is decided by labels that somebody else removes and adds.
    Watched(manifests.NODE, reading.node_of),
    Watched(manifests.GPU_NODE, reading.gpu_node_of),
    Watched(manifests.POD, reading.agent_pod_of, labels=f"app={names.DAEMONSET_DEVICE_PLUGIN}"),
    *(
        Watched(kind, reading.live_object_of)
        for kind in (
            manifests.SERVICE_ACCOUNT,
            manifests.ROLE,
            manifests.ROLE_BINDING,
            manifests.CLUSTER_ROLE,
            manifests.CLUSTER_ROLE_BINDING,
            manifests.SERVICE,
            manifests.DAEMON_SET,
            manifests.RUNTIME_CLASS,
        )
    ),
)
"""What kopf watches; the namespaced ones in the operator's namespace only."""
LISTED = Watched(
    manifests.SERVICE_MONITOR, reading.live_object_of, labels=f"{names.LABEL_MANAGED_BY}={names.CONTROLLER}"
)
"""A kind that may be absent, which kopf would stumble over: ours are looked up at each resync."""
_BY_KIND = {watched.kind: watched for watched in (*WATCHED, LISTED)}


@dataclass(frozen=True, slots=True)
class Sighting:
    """One object as a watch told it."""

    kind: Kind
    name: str
    value: Any
    """The slim value; None: gone, or it does not count."""
    live: Manifest | None = None
    """The object without its status, where components are made of its kind."""
    version: int = 0
    """Grows with every change in the cluster; 0 where it is not known."""


def sighting_of(watched: Watched, manifest: Manifest, settings: Settings) -> Sighting:
    """Reads one object. Runs in the thread of the watches, so that a big cluster does not hold up the passes."""
    name, version = manifest["metadata"]["name"], _version_of(manifest)
    value = watched.read(manifest)
    if isinstance(value, Node) and settings.canary is not None:
        value = replace(value, canary=settings.canary.matches(manifest["metadata"].get("labels") or {}))
    if not isinstance(value, LiveObject):
        return Sighting(watched.kind, name, value, version=version)
    # RuntimeClasses of others count too: pods may name them.
    is_known = watched.kind == manifests.RUNTIME_CLASS or value.key in components.all_keys(settings.namespace)
    if not value.managed and not is_known:
        return Sighting(watched.kind, name, None, version=version)
    return Sighting(watched.kind, name, value, comparing.essence_of(manifest), version)


def _version_of(manifest: Manifest) -> int:
    version = str(manifest["metadata"].get("resourceVersion", ""))
    return int(version) if version.isdecimal() else 0


@dataclass(frozen=True, slots=True)
class _Told:
    sighting: int
    """Which of all sightings was the last one of it."""
    version: int


class Store:
    """The newest value of everything watched. Unlike a `Snapshot`, it changes."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.config_maps_elsewhere: tuple[ObjectKey, ...] = ()
        self.gpu_clusters: tuple[str, ...] = ()
        self.lost_labels: Mapping[str, frozenset[str]] = {}
        """Labels that somebody else keeps writing, by uid of the Node."""
        self.lost_objects: frozenset[ObjectKey] = frozenset()
        """Objects that somebody else keeps rewriting or deleting."""
        self.nvidia_operators: frozenset[str] = frozenset()
        """Namespaces in which NVIDIA's operator is at work."""
        self.unshown: Mapping[str, str] = {}
        """What the last plan left standing of nodes that do not show their shares."""
        self.pod_security: Mapping[str, str] = {}
        """Labels of our namespace that are ours."""
        self.service_monitors = False
        """Whether the kind exists."""
        self.failures: Mapping[str, str] = {}
        """What could not be written in the last pass, by component or part."""
        self.missing_rights = ""
        """Rights that the controller lacks, for people."""
        self._values: dict[Kind, dict[str, Any]] = {kind: {} for kind in _BY_KIND}
        self._told: dict[Kind, dict[str, _Told]] = {kind: {} for kind in _BY_KIND}
        """Every object that exists; also those that do not count."""
        self._live: dict[ObjectKey, Manifest] = {}
        self._sightings = 0
        self._saw = asyncio.Event()

    @property
    def live(self) -> Mapping[ObjectKey, Manifest]:
        """The objects that our components are made of, without status."""
        return self._live

    @property
    def counts(self) -> dict[str, int]:
        """How many objects of each kind count, by the plural of the kind."""
        return {kind.plural: len(values) for kind, values in self._values.items()}

    @property
    def sightings(self) -> int:
        """How often anything was seen so far: a moment, for `drop_others`."""
        return self._sightings

    def see(self, sighting: Sighting, *, gone: bool = False) -> bool:
        """Takes over what a watch told, or what the answer to a write of ours said.

        Returns whether a pass could decide otherwise than before. What is older than what is known is left out: an answer
        overtakes the watch, and a pass in between would write the same again.
        """
        self._sightings += 1
        self._saw.set()
        told = self._told[sighting.kind]
        before = told.get(sighting.name)
        if before is not None and 0 < sighting.version < before.version:
            return False
        if gone:
            told.pop(sighting.name, None)
        else:
            told[sighting.name] = _Told(self._sightings, sighting.version)
        if gone or sighting.value is None:
            return self._forget(sighting.kind, sighting.name)
        values = self._values[sighting.kind]
        changed = values.get(sighting.name) != sighting.value
        # Also where it is equal: the version of a Node, which is not compared, goes into some patches.
        values[sighting.name] = sighting.value
        return self._keep_live(sighting) or changed

    def see_written(self, manifest: Manifest) -> None:
        """Takes over the answer to a write of ours, ahead of the watch."""
        kind = manifests.kind_of(manifest)
        self.see(sighting_of(_BY_KIND[kind], manifest, self.settings))

    def see_deleted(self, key: ObjectKey) -> None:
        """Takes over that we deleted an object, ahead of the watch."""
        self.see(Sighting(key.kind, key.name, None), gone=True)

    def _forget(self, kind: Kind, name: str) -> bool:
        value = self._values[kind].pop(name, None)
        if isinstance(value, LiveObject):
            self._live.pop(value.key, None)
        return value is not None

    def _keep_live(self, sighting: Sighting) -> bool:
        if sighting.live is None:
            return False
        before = self._live.get(sighting.value.key)
        self._live[sighting.value.key] = sighting.live
        return before != sighting.live

    async def wait_for(self, kind: Kind, existing: frozenset[str], *, seconds: float) -> frozenset[str]:
        """Waits until the watches have told of everything that exists. Returns the names that are missing even then."""
        try:
            async with asyncio.timeout(seconds):
                while existing - self._told[kind].keys():
                    self._saw.clear()
                    await self._saw.wait()
        except TimeoutError:
            pass
        return existing - self._told[kind].keys()

    def drop_others(self, kind: Kind, existing: frozenset[str], since: int) -> bool:
        """Forgets what is gone without a watch telling it, as happens when a watch has to start again.

        Args:
            kind: of which `existing` names all objects.
            existing: as listed after the moment `since`; what was seen later than that may be new, and stays.
            since: `sightings` before the list.
        """
        told = self._told[kind].items()
        ghosts = [name for name, when in told if when.sighting <= since and name not in existing]
        changed = [self.see(Sighting(kind, name, None), gone=True) for name in ghosts]
        return any(changed)

    def snapshot(self) -> Snapshot:
        """The cluster at this moment."""
        seen = {kind: tuple(values.values()) for kind, values in self._values.items()}
        return Snapshot(
            settings=self.settings,
            policies=seen[manifests.CLUSTER_POLICY],
            config_maps=seen[manifests.CONFIG_MAP],
            config_maps_elsewhere=self.config_maps_elsewhere,
            nodes=seen[manifests.NODE],
            gpu_nodes=seen[manifests.GPU_NODE],
            objects=tuple(value for values in seen.values() for value in values if isinstance(value, LiveObject)),
            agent_pods=seen[manifests.POD],
            gpu_clusters=self.gpu_clusters,
            lost_labels=self.lost_labels,
            lost_objects=self.lost_objects,
            nvidia_operators=self.nvidia_operators,
            runtime_classes=frozenset(item.key.name for item in seen[manifests.RUNTIME_CLASS] if not item.managed),
            unshown=self.unshown,
            pod_security=self.pod_security,
            service_monitors=self.service_monitors,
            failures=self.failures,
            missing_rights=self.missing_rights,
        )
