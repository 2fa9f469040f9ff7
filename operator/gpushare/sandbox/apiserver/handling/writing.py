"""Create and update: what every write goes through before it is stored.

POST, PUT, each kind of patch and server-side apply bring a new state of an object; from there on they share one way:
metadata that clients cannot change, decoding against the schema, defaults, admission, validation, policies, ownership of
fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import statuses
from gpushare.sandbox.apiserver.handling import attempts, metadata, preparing
from gpushare.sandbox.apiserver.handling.admission import Admission
from gpushare.sandbox.apiserver.handling.attempts import Attempt
from gpushare.sandbox.apiserver.handling.policies import Policies
from gpushare.sandbox.apiserver.objects import custom_defaults, decoding, defaults, times
from gpushare.sandbox.apiserver.objects.jsonvalues import copied
from gpushare.sandbox.apiserver.patching import applying, managed_fields
from gpushare.sandbox.apiserver.patching.managed_fields import Author
from gpushare.sandbox.apiserver.requests import User
from gpushare.sandbox.apiserver.resources import NAMESPACES, PODS, Resource
from gpushare.sandbox.apiserver.storage import Record, Store
from gpushare.sandbox.apiserver.validation import checking

SYSTEM = User("system:apiserver", ("system:masters",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """How something is written: by whom, through which door."""

    manager: str
    user: User = SYSTEM
    subresource: str = ""
    dry_run: bool = False
    strictness: str = "Ignore"
    """`fieldValidation`: what happens to unknown fields, `Strict`, `Warn` or `Ignore`."""
    patched: str | None = None
    """What a patch made, as texts about it quote it; None for a body that was sent whole."""
    warnings: list[str] = field(default_factory=list)
    """Filled on the way; the client reads them."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes objects into the store as an API server does."""

    store: Store
    admission: Admission
    policies: Policies

    def create(self, resource: Resource, namespace: str, obj: Manifest, write: Write) -> Record:
        """A new object. Raises `ApiError`."""
        return self._create(resource, namespace, _decoded(resource, obj, write), write, applied=False)

    def update(self, resource: Resource, old: Record, new: Manifest, write: Write) -> Record:
        """A new state of an object; the same record comes back where nothing changes. Raises `ApiError`."""
        decoded = _decoded(resource, new, write)
        metadata.check_version(resource, old, decoded["metadata"])
        return self._update(resource, old, decoded, write, applied=False)

    def apply(
        self, resource: Resource, place: tuple[str, str], config: Manifest, write: Write, *, force: bool
    ) -> tuple[Record, bool]:
        """Server-side apply of the object at a namespace and name; whether it was created. Raises `ApiError`."""
        namespace, name = place
        old = self.store.get(resource.key, namespace, name)
        if old is None and write.subresource:
            raise statuses.not_found(resource, name)
        metadata.check_uid(resource, old, config, name)
        place_metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        config = _decoded(resource, {**config, "metadata": {**config["metadata"], **place_metadata}}, write)
        metadata.check_version(resource, old, config["metadata"])
        live, author = old.object if old else None, _author(resource.stored, write)
        applied = copied(applying.apply(live, config, resource.stored.schema, author, force=force))
        if old is None:
            return self._create(resource, namespace, applied, write, applied=True), True
        return self._update(resource, old, applied, write, applied=True), False

    def bind(self, resource: Resource, old: Record, pod: Manifest, write: Write) -> Record:
        """A pod on its node: the one write that changes spec and status at once."""
        # A real server writes down no owner for what a binding sets.
        return Record(pod, old.version) if write.dry_run else self.store.put(resource.key, pod)

    def _create(self, resource: Resource, namespace: str, new: Manifest, write: Write, *, applied: bool) -> Record:
        kept = resource.stored
        metadata.name_new(self.store, resource, namespace, new)
        metadata.check_namespace(self.store, resource, new["metadata"])
        preparing.prepare_create(kept, new)
        self._complete(resource, new, None, write)
        if not applied:
            applying.track_update(None, new, kept.schema, _author(kept, write))
        new = metadata.arranged(new)
        name = new["metadata"]["name"]
        if self.store.get(kept.key, new["metadata"].get("namespace", ""), name):
            raise statuses.already_exists(resource, name)
        return Record(new, 0) if write.dry_run else self.store.put(kept.key, new)

    def _update(self, resource: Resource, old: Record, new: Manifest, write: Write, *, applied: bool) -> Record:
        kept, before = resource.stored, old.object
        new = _through_door(kept, before, new, write)
        metadata.keep(before["metadata"], new["metadata"])
        preparing.prepare_update(kept, new, before)
        self._complete(resource, new, before, write)
        if not applied:
            applying.track_update(before, new, kept.schema, _author(kept, write))
        new = metadata.arranged(new)
        if managed_fields.is_unchanged(new, before):
            # A write that changes nothing keeps the version: nobody who watches hears of it.
            return old
        about = new["metadata"]
        if kept.has_generation and _content(new) != _content(before):
            about["generation"] = before["metadata"].get("generation", 1) + 1
        if write.dry_run:
            return Record(new, old.version)
        if about.get("deletionTimestamp") and not about.get("finalizers") and not _lingers(kept, new):
            return self.store.remove(kept.key, new)
        return self.store.put(kept.key, new)

    def _complete(self, resource: Resource, new: Manifest, old: Manifest | None, write: Write) -> None:
        kept = resource.stored
        (custom_defaults if kept.custom else defaults).apply(new, kept.schema)
        self.admission.admit(kept, new, old, write.user, write.warnings)
        if causes := checking.check(resource, new, old, write.subresource):
            raise statuses.invalid(kept.kind, kept.group, new["metadata"]["name"], causes)
        attempt = Attempt(
            operation=attempts.CREATE if old is None else attempts.UPDATE,
            resource=kept,
            user=write.user,
            new=new,
            old=old,
            subresource=write.subresource,
            dry_run=write.dry_run,
        )
        self.policies.check(attempt, write.warnings)


def _decoded(resource: Resource, obj: Manifest, write: Write) -> Manifest:
    """What a client sent, in the form in which it is stored; the caller's own."""
    obj = {**obj, "metadata": obj.get("metadata") or {}}
    decoded = decoding.decode(resource, obj, write.strictness, write.warnings, patched=write.patched)
    decoded = resource.view.read(decoded) if resource.view else decoded
    decoded["apiVersion"], decoded["kind"] = resource.stored.api_version, resource.stored.kind
    return decoded


def _author(resource: Resource, write: Write) -> Author:
    ignored = applying.ignored_fields(
        subresource=write.subresource, has_status=resource.has_status, custom=resource.custom
    )
    return Author(write.manager, write.subresource, times.now(), ignored)


def _through_door(resource: Resource, old: Manifest, new: Manifest, write: Write) -> Manifest:
    """What of the new state this door lets through: all but status, or status only."""
    if write.subresource == "status":
        about = new["metadata"]
        if resource.custom:
            about = {**old["metadata"], **_only(about, "managedFields")}
        # Copied, since defaults are filled in place.
        kept: Manifest = copied({key: value for key, value in old.items() if key not in ("metadata", "status")})
        return {**kept, "metadata": dict(about), **_only(new, "status")}
    if resource.has_status:
        status: Manifest = copied(_only(old, "status"))
        return {key: value for key, value in new.items() if key != "status"} | status
    return new


def _only(obj: Mapping[str, Any], *names: str) -> Manifest:
    return {name: obj[name] for name in names if name in obj}


def _content(obj: Manifest) -> Manifest:
    return {key: value for key, value in obj.items() if key not in ("metadata", "status")}


def _lingers(resource: Resource, obj: Manifest) -> bool:
    """Whether an object that is being deleted waits for something other than finalizers in its metadata."""
    if resource.key == NAMESPACES:
        return bool(obj.get("spec", {}).get("finalizers"))
    return resource.key == PODS and bool(obj["metadata"].get("deletionGracePeriodSeconds"))
