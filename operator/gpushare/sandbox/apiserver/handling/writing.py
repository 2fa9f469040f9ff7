"""Create and update: what every write goes through before it is stored.

POST, PUT, each kind of patch and server-side apply bring a new state of an object; from there on they share one way:
metadata that clients cannot change, decoding against the schema, defaults, admission, validation, policies, ownership of
fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import statuses
from gpushare.sandbox.apiserver.handling import attempts, metadata, pod_admission, preparing
from gpushare.sandbox.apiserver.handling.admission import Admission
from gpushare.sandbox.apiserver.handling.attempts import Attempt
from gpushare.sandbox.apiserver.handling.policies import Policies
from gpushare.sandbox.apiserver.objects import custom_defaults, decoding, defaults, times
from gpushare.sandbox.apiserver.objects.jsonvalues import copied
from gpushare.sandbox.apiserver.patching import applying, claims, managed_fields
from gpushare.sandbox.apiserver.patching.managed_fields import Author
from gpushare.sandbox.apiserver.requests import User
from gpushare.sandbox.apiserver.resources import NAMESPACES, PODS, Resource
from gpushare.sandbox.apiserver.statuses import ApiError
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


@dataclass(slots=True, kw_only=True)
class Draft:
    """A write on its way: from which state it starts, and which it has come to."""

    resource: Resource
    old: Record | None
    """None where the object is to be created."""
    new: Manifest
    write: Write
    applied: bool
    """Server-side apply has noted the ownership of fields already."""

    @property
    def attempt(self) -> Attempt:
        """As policies and webhooks are told of it."""
        return Attempt(
            operation=attempts.CREATE if self.old is None else attempts.UPDATE,
            resource=self.resource.stored,
            user=self.write.user,
            new=self.new,
            old=self.old.object if self.old else None,
            subresource=self.write.subresource,
            dry_run=self.write.dry_run,
        )


class Outdated(ApiError):  # noqa: N818 - the state is the name
    """The object has changed since the draft was begun; a request that names no version starts again."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes objects into the store as an API server does: a draft, which is checked, and then stored.

    What the server does by itself takes the short ways `create` and `update`. Between the steps of a request webhooks are asked
    (`reviewing`).
    """

    store: Store
    admission: Admission
    policies: Policies

    def create(self, resource: Resource, namespace: str, obj: Manifest, write: Write) -> Record:
        """A new object. Raises `ApiError`."""
        return self._finish(self.draft_create(resource, namespace, obj, write))

    def update(self, resource: Resource, old: Record, new: Manifest, write: Write) -> Record:
        """A new state of an object; the same record comes back where nothing changes. Raises `ApiError`."""
        return self._finish(self.draft_update(resource, old, new, write))

    def draft_create(self, resource: Resource, namespace: str, obj: Manifest, write: Write) -> Draft:
        """A new object, complete. Raises `ApiError`."""
        return self._begin(resource, namespace, _decoded(resource, obj, write), write, applied=False)

    def draft_update(self, resource: Resource, old: Record, new: Manifest, write: Write) -> Draft:
        """A new state of an object, complete. Raises `ApiError`."""
        decoded = _decoded(resource, new, write)
        metadata.check_version(resource, old, decoded["metadata"])
        return self._change(resource, old, decoded, write, applied=False)

    def draft_apply(
        self, resource: Resource, place: tuple[str, str], config: Manifest, write: Write, *, force: bool
    ) -> Draft:
        """Server-side apply of the object at a namespace and name. Raises `ApiError`."""
        namespace, name = place
        old = self.store.get(resource.key, namespace, name)
        if old is None and write.subresource:
            raise statuses.not_found(resource, name)
        metadata.check_uid(resource, old, config, name)
        claims.check(config, resource.schema)
        place_metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        config = _decoded(resource, {**config, "metadata": {**config["metadata"], **place_metadata}}, write)
        metadata.check_version(resource, old, config["metadata"])
        live, author = old.object if old else None, _author(resource.stored, write)
        applied = copied(applying.apply(live, config, resource.stored.schema, author, force=force))
        if old is None:
            applied["metadata"].pop("resourceVersion", None)
            return self._begin(resource, namespace, applied, write, applied=True)
        return self._change(resource, old, applied, write, applied=True)

    def amend(self, draft: Draft, new: Manifest) -> None:
        """Takes what a webhook has made of the object."""
        kept = draft.resource.stored
        new = _decoded(kept, new, replace(draft.write, strictness="Ignore"))
        draft.new = _through_door(kept, draft.old.object, new, draft.write) if draft.old else new
        _default(kept, draft.new)
        if kept.key == PODS and draft.old is None:
            draft.new["status"] = pod_admission.first_status(draft.new["spec"])

    def check(self, draft: Draft) -> None:
        """Whether the object may be stored. Raises `ApiError`."""
        kept, old = draft.resource.stored, draft.old
        before = old.object if old else None
        if causes := checking.check(draft.resource, draft.new, before, draft.write.subresource):
            raise statuses.invalid(kept.kind, kept.group, draft.new["metadata"]["name"], causes)
        self.policies.check(draft.attempt, draft.write.warnings)

    def commit(self, draft: Draft) -> Record:
        """Stores the object. Raises `ApiError` where it is there already, and `Outdated`."""
        kept, about = draft.resource.stored, draft.new["metadata"]
        if not draft.applied:
            before = draft.old.object if draft.old else None
            applying.track_update(before, draft.new, kept.schema, _author(kept, draft.write))
        new = metadata.arranged(draft.new)
        current = self.store.get(kept.key, about.get("namespace", ""), about["name"])
        if draft.old is not None:
            if current is not draft.old:
                raise _outdated(draft.resource, about["name"], gone=current is None)
            return self._put(kept, draft.old, new, draft.write)
        if current is not None:
            raise statuses.already_exists(draft.resource, about["name"])
        return Record(new, 0) if draft.write.dry_run else self.store.put(kept.key, new)

    def bind(self, resource: Resource, old: Record, pod: Manifest, write: Write) -> Record:
        """A pod on its node: the one write that changes spec and status at once."""
        # A real server writes down no owner for what a binding sets.
        return Record(pod, old.version) if write.dry_run else self.store.put(resource.key, pod)

    def _finish(self, draft: Draft) -> Record:
        self.check(draft)
        return self.commit(draft)

    def _begin(self, resource: Resource, namespace: str, new: Manifest, write: Write, *, applied: bool) -> Draft:
        metadata.name_new(self.store, resource, namespace, new)
        metadata.check_namespace(self.store, resource, new["metadata"])
        preparing.prepare_create(resource.stored, new)
        return self._complete(Draft(resource=resource, old=None, new=new, write=write, applied=applied))

    def _change(self, resource: Resource, old: Record, new: Manifest, write: Write, *, applied: bool) -> Draft:
        new = _through_door(resource.stored, old.object, new, write)
        metadata.keep(old.object["metadata"], new["metadata"])
        preparing.prepare_update(resource.stored, new, old.object)
        return self._complete(Draft(resource=resource, old=old, new=new, write=write, applied=applied))

    def _complete(self, draft: Draft) -> Draft:
        kept, write = draft.resource.stored, draft.write
        _default(kept, draft.new)
        self.admission.admit(kept, draft.new, draft.old.object if draft.old else None, write.user, write.warnings)
        return draft

    def _put(self, kept: Resource, old: Record, new: Manifest, write: Write) -> Record:
        before, about = old.object, new["metadata"]
        if managed_fields.is_unchanged(new, before):
            # A write that changes nothing keeps the version: nobody who watches hears of it.
            return old
        if kept.has_generation and _content(new) != _content(before):
            about["generation"] = before["metadata"].get("generation", 1) + 1
        if write.dry_run:
            return Record(new, old.version)
        if about.get("deletionTimestamp") and not about.get("finalizers") and not _lingers(kept, new):
            return self.store.remove(kept.key, new)
        return self.store.put(kept.key, new)


def _outdated(resource: Resource, name: str, *, gone: bool) -> ApiError:
    if gone:
        return statuses.not_found(resource, name)
    conflict = statuses.conflict(resource, name)
    return Outdated(conflict.code, conflict.reason, conflict.message, details=conflict.details)


def _default(kept: Resource, new: Manifest) -> None:
    (custom_defaults if kept.custom else defaults).apply(new, kept.schema)


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
