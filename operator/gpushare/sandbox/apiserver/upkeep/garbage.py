"""What goes when something else goes, and what every namespace has.

In a real cluster these are controllers: owners and dependents, the end of namespaces and of CustomResourceDefinitions, the
ServiceAccount `default` and the ConfigMap `kube-root-ca.crt`. Here they belong to the server, so that it is whole on its own.
They hear of each change at once, and act right after the request that made it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.handling.deleting import CRD_CLEANUP, FOREGROUND, ORPHAN, DeleteOptions, Deleter
from gpushare.sandbox.apiserver.handling.writing import Write, Writer
from gpushare.sandbox.apiserver.resources import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, Key, Registry, Resource
from gpushare.sandbox.apiserver.statuses import ApiError
from gpushare.sandbox.apiserver.storage import DELETED, Event, Record, Store

ROOT_CA = "kube-root-ca.crt"
_ROOT_CA_NOTE = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal "
    "service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."
)
_CONFIG_MAPS: Key = ("", "configmaps")
_SERVICE_ACCOUNTS: Key = ("", "serviceaccounts")
_WRITE = Write(manager="kube-controller-manager")
_BACKGROUND = DeleteOptions(policy="Background")


class Place(NamedTuple):
    """Where an object is stored."""

    key: Key
    namespace: str
    name: str


@dataclass(slots=True, kw_only=True)
class Collector:
    """Follows all changes of the store. `run` does the work."""

    store: Store
    registry: Registry
    writer: Writer
    deleter: Deleter
    ca_pem: str
    log: logging.Logger
    _owners: dict[str, Place] = field(default_factory=dict)
    """Every object by uid."""
    _dependents: defaultdict[str, set[Place]] = field(default_factory=lambda: defaultdict(set))
    """Who names a uid as its owner."""
    _todo: dict[Place, None] = field(default_factory=dict)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.store.listeners.append(self._see)

    async def run(self) -> None:
        """Works until it is cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            self.settle()

    def settle(self) -> None:
        """Does what there is to do, and what follows from that."""
        while self._todo:
            place = next(iter(self._todo))
            del self._todo[place]
            try:
                self._look(place)
            except ApiError as error:
                # Somebody else was first, or content may not be written: the next change brings the object back here.
                self.log.debug("garbage collection failed", extra={"place": place, "error": error.message})

    def _see(self, event: Event) -> None:
        record = event.record
        place = Place(event.key, record.namespace, record.name)
        if event.previous is not None:
            for uid in _owner_uids(event.previous.object):
                self._dependents[uid].discard(place)
        uid = record.object["metadata"]["uid"]
        if event.type == DELETED:
            self._owners.pop(uid, None)
            self._later(*self._dependents.get(uid, ()))
        else:
            self._owners[uid] = place
            for owner in _owner_uids(record.object):
                self._dependents[owner].add(place)
        self._later(place, *self._affected(record))

    def _affected(self, record: Record) -> Iterator[Place]:
        """Who may have waited for this change: owners, the namespace, the definition of the kind."""
        for uid in _owner_uids(record.object):
            if uid in self._owners:
                yield self._owners[uid]
        if record.namespace:
            yield Place(NAMESPACES, "", record.namespace)

    def _later(self, *places: Place) -> None:
        self._todo.update(dict.fromkeys(places))
        if self._todo:
            self._wake.set()

    def _look(self, place: Place) -> None:
        record = self.store.get(*place)
        resource = self.registry.stored.get(place.key)
        if record is None:
            self._look_for_definition(place)
            return
        if resource is None:
            return
        if place.key == NAMESPACES:
            self._look_at_namespace(resource, record)
        elif place.key == CUSTOM_RESOURCE_DEFINITIONS:
            self._look_at_definition(resource, record)
        self._look_at_owners(resource, record)
        self._look_at_finalizers(resource, record)

    # ---- owners and dependents

    def _look_at_owners(self, resource: Resource, record: Record) -> None:
        references = record.object["metadata"].get("ownerReferences") or []
        if not references or record.object["metadata"].get("deletionTimestamp"):
            return
        present = [each for each in references if each["uid"] in self._owners]
        solid = [each for each in present if not self._waits_for_dependents(each["uid"])]
        if not solid:
            self.deleter.delete(resource, record.namespace, record.name, _BACKGROUND)
        elif len(present) < len(references):
            self.writer.update(resource, record, _with_metadata(record, ownerReferences=present), _WRITE)

    def _waits_for_dependents(self, uid: str) -> bool:
        owner = self.store.get(*self._owners[uid])
        return owner is not None and _is_ending(owner, FOREGROUND)

    def _look_at_finalizers(self, resource: Resource, record: Record) -> None:
        dependents = self._dependents.get(record.object["metadata"]["uid"], set())
        if _is_ending(record, ORPHAN):
            for place in tuple(dependents):
                self._orphan(place, record.object["metadata"]["uid"])
            self._finish(resource, record, ORPHAN)
        elif _is_ending(record, FOREGROUND):
            self._later(*dependents)
            if not dependents:
                self._finish(resource, record, FOREGROUND)

    def _orphan(self, place: Place, uid: str) -> None:
        record = self.store.get(*place)
        resource = self.registry.stored.get(place.key)
        if record is not None and resource is not None:
            left = [each for each in record.object["metadata"]["ownerReferences"] if each["uid"] != uid]
            self.writer.update(resource, record, _with_metadata(record, ownerReferences=left), _WRITE)

    def _finish(self, resource: Resource, record: Record, finalizer: str) -> None:
        left = [name for name in record.object["metadata"]["finalizers"] if name != finalizer]
        self.writer.update(resource, record, _with_metadata(record, finalizers=left), _WRITE)

    # ---- namespaces

    def _look_at_namespace(self, resource: Resource, record: Record) -> None:
        if not record.object["metadata"].get("deletionTimestamp"):
            self._furnish(record.name)
            return
        left = False
        for kind in tuple(self.registry.stored.values()):
            if kind.namespaced:
                for content in self.store.objects(kind.key, record.name):
                    _, gone = self.deleter.delete(kind, record.name, content.name, DeleteOptions())
                    left = left or not gone
        if not left:
            spec = {**record.object["spec"], "finalizers": []}
            self.writer.update(resource, record, {**record.object, "spec": spec}, _WRITE)

    def _furnish(self, namespace: str) -> None:
        """What controllers of a real cluster put into each namespace, and put back when it is deleted."""
        if self.store.get(_SERVICE_ACCOUNTS, namespace, "default") is None:
            self.writer.create(
                self.registry.find("", "v1", "serviceaccounts"), namespace, {"metadata": {"name": "default"}}, _WRITE
            )
        if self.store.get(_CONFIG_MAPS, namespace, ROOT_CA) is None:
            root: Manifest = {
                "metadata": {"name": ROOT_CA, "annotations": {"kubernetes.io/description": _ROOT_CA_NOTE}},
                "data": {"ca.crt": self.ca_pem},
            }
            self.writer.create(self.registry.find("", "v1", "configmaps"), namespace, root, _WRITE)

    # ---- custom resource definitions

    def _look_at_definition(self, resource: Resource, record: Record) -> None:
        if not _is_ending(record, CRD_CLEANUP):
            return
        spec = record.object["spec"]
        key = (spec["group"], spec["names"]["plural"])
        kind = self.registry.stored.get(key)
        if kind is not None:
            for content in self.store.objects(key):
                self.deleter.delete(kind, content.namespace, content.name, DeleteOptions())
        if not self.store.objects(key):
            self._finish(resource, record, CRD_CLEANUP)

    def _look_for_definition(self, place: Place) -> None:
        """The last object of a kind may be what its definition waits for."""
        name = f"{place.key[1]}.{place.key[0]}"
        if self.store.get(CUSTOM_RESOURCE_DEFINITIONS, "", name) is not None and not self.store.objects(place.key):
            self._later(Place(CUSTOM_RESOURCE_DEFINITIONS, "", name))


def _owner_uids(obj: Manifest) -> list[str]:
    return [each["uid"] for each in obj["metadata"].get("ownerReferences") or ()]


def _is_ending(record: Record, finalizer: str) -> bool:
    metadata = record.object["metadata"]
    return bool(metadata.get("deletionTimestamp")) and finalizer in (metadata.get("finalizers") or ())


def _with_metadata(record: Record, **changes: object) -> Manifest:
    return {**record.object, "metadata": {**record.object["metadata"], **changes}}
