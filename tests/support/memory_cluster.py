"""A cluster in memory, for the loops of controllers: objects, versions, watches, and nothing that a server decides."""

# ruff: noqa: ARG002 - the parameters are those of the protocol
from __future__ import annotations

import asyncio
import copy
import itertools
from collections.abc import AsyncGenerator, Callable
from typing import Any

from gpushare.domain import manifests
from gpushare.domain.manifests import Kind, Manifest
from gpushare.errors import ClusterRefused, Conflict
from gpushare.kube.cluster import EventType, ObjectList, PatchType, Trim, WatchEvent


class MemoryCluster:
    """Implements `kube.cluster.Cluster`, as far as controllers use it."""

    def __init__(self) -> None:
        self.objects: dict[tuple[Kind, str, str], Manifest] = {}
        self.refusals: dict[str, Exception] = {}
        """Raised once, by the next write whose description (see `writes`) begins so."""
        self.writes: list[str] = []
        """`verb Kind name[/subresource]` of every write, in order."""
        self._counter = itertools.count(1)
        self._changed = asyncio.Event()
        self._watches: list[tuple[Kind, str, asyncio.Queue[WatchEvent]]] = []

    def now(self, kind: Kind, name: str, namespace: str = "") -> Manifest:
        """An object that must be there."""
        return self.objects[kind, namespace, name]

    def all(self, kind: Kind) -> list[Manifest]:
        """All objects of a kind, oldest first."""
        return [found for (each, _, _), found in self.objects.items() if each == kind]

    async def until(self, holds: Callable[[], bool]) -> None:
        """Waits until something holds that only writes can bring about."""
        while not holds():
            self._changed.clear()
            await self._changed.wait()

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Manifest | None:
        return copy.deepcopy(self.objects.get((kind, namespace, name)))

    async def list(
        self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "", trim: Trim | None = None
    ) -> ObjectList:
        found = [each for each in copy.deepcopy(self.all(kind)) if _selects(fields, each)]
        kept = found if trim is None else [each for each in map(trim, found) if each is not None]
        return ObjectList(tuple(kept), str(next(self._counter)))

    async def watch(
        self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "", resource_version: str = ""
    ) -> AsyncGenerator[WatchEvent, None]:
        queue: asyncio.Queue[WatchEvent] = asyncio.Queue()
        for found in self.all(kind):
            if int(found["metadata"]["resourceVersion"]) > int(resource_version) and _selects(fields, found):
                queue.put_nowait(WatchEvent(EventType.ADDED, copy.deepcopy(found)))
        self._watches.append((kind, fields, queue))
        while True:
            yield await queue.get()

    async def create(self, manifest: Manifest, *, subresource: str = "", name: str = "") -> Manifest:
        if subresource == "binding":
            return self._bind(manifest)
        kind = manifests.kind_of(manifest)
        created = copy.deepcopy(manifest)
        metadata = created["metadata"]
        number = next(self._counter)
        metadata.setdefault("name", f"{metadata.get('generateName', '')}{number:05d}")
        self._write(f"create {kind.kind} {metadata['name']}")
        key = (kind, metadata.get("namespace", ""), metadata["name"])
        if key in self.objects:
            raise Conflict(f"{metadata['name']} exists")
        metadata |= {
            "uid": f"uid-{number}",
            "generation": 1,
            "creationTimestamp": f"2026-01-01T00:00:{number % 60:02d}Z",
        }
        return self._store(key, created, EventType.ADDED)

    async def replace(self, manifest: Manifest, *, subresource: str = "") -> Manifest:
        kind, metadata = manifests.kind_of(manifest), manifest["metadata"]
        self._write(f"replace {kind.kind} {metadata['name']}{'/' if subresource else ''}{subresource}")
        key = (kind, metadata.get("namespace", ""), metadata["name"])
        old = self.objects.get(key)
        if old is None:
            raise ClusterRefused("not found", code=404)
        if old["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
            raise Conflict("the object has been modified")
        new = {**old, "status": manifest["status"]} if subresource else {**manifest, "status": old.get("status", {})}
        return self._store(key, _with_generation(copy.deepcopy(new), old), EventType.MODIFIED)

    async def patch(
        self,
        kind: Kind,
        name: str,
        body: Any,
        namespace: str = "",
        *,
        patch_type: PatchType = PatchType.MERGE,
        subresource: str = "",
    ) -> Manifest | None:
        self._write(f"patch {kind.kind} {name}{'/' if subresource else ''}{subresource}")
        old = self.objects.get((kind, namespace, name))
        if old is None:
            return None
        asked = body.get("metadata", {}).get("resourceVersion")
        if asked is not None and asked != old["metadata"]["resourceVersion"]:
            raise Conflict("the object has been modified")
        new = _merge(copy.deepcopy(old), body, by_type=patch_type is PatchType.STRATEGIC)
        return self._store((kind, namespace, name), _with_generation(new, old), EventType.MODIFIED)

    async def delete(
        self, kind: Kind, name: str, namespace: str = "", *, uid: str = "", grace_seconds: int | None = None
    ) -> bool:
        self._write(f"delete {kind.kind} {name}")
        key = (kind, namespace, name)
        found = self.objects.get(key)
        if found is None:
            return False
        if uid and found["metadata"]["uid"] != uid:
            raise Conflict("another object of this name")
        if kind == manifests.POD and found["spec"].get("nodeName") and grace_seconds != 0:
            going = copy.deepcopy(found)
            going["metadata"].setdefault("deletionTimestamp", "2026-01-01T00:00:00Z")
            self._store(key, going, EventType.MODIFIED)
        else:
            del self.objects[key]
            self._tell(kind, EventType.DELETED, found)
        return True

    async def apply(self, manifest: Manifest, *, manager: str, force: bool = False, subresource: str = "") -> Manifest:
        raise NotImplementedError("no controller of the sandbox applies")

    async def close(self) -> None:
        """Nothing to close."""

    def _write(self, what: str) -> None:
        for beginning in [known for known in self.refusals if what.startswith(known)]:
            raise self.refusals.pop(beginning)
        self.writes.append(what)

    def _bind(self, binding: Manifest) -> Manifest:
        metadata = binding["metadata"]
        self._write(f"bind Pod {metadata['name']} {binding['target']['name']}")
        key = (manifests.POD, metadata["namespace"], metadata["name"])
        pod = copy.deepcopy(self.objects[key])
        if pod["spec"].get("nodeName"):
            raise Conflict("already assigned")
        if metadata.get("uid") not in {None, pod["metadata"]["uid"]}:
            raise Conflict("another pod of this name")
        pod["spec"]["nodeName"] = binding["target"]["name"]
        if metadata.get("annotations"):
            pod["metadata"].setdefault("annotations", {}).update(metadata["annotations"])
        return self._store(key, pod, EventType.MODIFIED)

    def _store(self, key: tuple[Kind, str, str], manifest: Manifest, event: EventType) -> Manifest:
        manifest["metadata"]["resourceVersion"] = str(next(self._counter))
        before, self.objects[key] = self.objects.get(key), manifest
        self._tell(key[0], event, manifest, before)
        return copy.deepcopy(manifest)

    def _tell(self, kind: Kind, event: EventType, manifest: Manifest, before: Manifest | None = None) -> None:
        self._changed.set()
        gone = {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": str(next(self._counter))}}
        for watched, fields, queue in self._watches:
            if watched == kind and (_selects(fields, manifest) or (before is not None and _selects(fields, before))):
                # What a selector lets through no longer leaves the watch; what it never let through does not show.
                left = event is EventType.DELETED or not _selects(fields, manifest)
                shown = gone if left else manifest
                queue.put_nowait(WatchEvent(EventType.DELETED if left else event, copy.deepcopy(shown)))


def _with_generation(new: Manifest, old: Manifest) -> Manifest:
    changed = new.get("spec") != old.get("spec")
    new["metadata"] = {**new["metadata"], "generation": old["metadata"]["generation"] + changed}
    return new


def _merge(target: Any, body: Any, *, by_type: bool) -> Any:
    if not isinstance(body, dict):
        if by_type and isinstance(body, list) and all(isinstance(item, dict) and "type" in item for item in body):
            given = {item["type"]: item for item in body}
            kept = {item["type"]: item for item in target or []}
            return [_merge(kept.get(name, {}), item, by_type=True) for name, item in (kept | given).items()]
        return body
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in body.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merge(merged.get(name), value, by_type=by_type)
    return merged


def _selects(fields: str, manifest: Manifest) -> bool:
    """Whether a field selector lets an object through; of its terms, only inequalities (`status.phase!=Failed`) count."""
    for term in (term for term in fields.split(",") if "!=" in term):
        path, _, refused = term.partition("!=")
        value: Any = manifest
        for part in path.split("."):
            value = value.get(part, {})
        if (value or "") == refused:
            return False
    return True
