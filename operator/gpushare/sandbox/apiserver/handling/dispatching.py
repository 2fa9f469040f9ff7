"""Requests about objects: one method a verb, and the three ways to change an object (PUT, patches, server-side apply)."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, replace
from typing import Any

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import field_errors, statuses
from gpushare.sandbox.apiserver.access.authorization import Authorizer
from gpushare.sandbox.apiserver.access.reviews import Reviewer
from gpushare.sandbox.apiserver.handling import watching
from gpushare.sandbox.apiserver.handling.deleting import DeleteOptions, Deleter
from gpushare.sandbox.apiserver.handling.reading import Reader
from gpushare.sandbox.apiserver.handling.reviewing import Reviewed
from gpushare.sandbox.apiserver.handling.subresources import Subresources
from gpushare.sandbox.apiserver.handling.writing import Outdated, Write
from gpushare.sandbox.apiserver.objects.jsonvalues import compact, encode, printed
from gpushare.sandbox.apiserver.patching import json_patches, merging
from gpushare.sandbox.apiserver.protocol import bodies, presenting
from gpushare.sandbox.apiserver.requests import Answer, Request, Response, Target, User
from gpushare.sandbox.apiserver.resources import NAMESPACES, PODS, Registry, Resource
from gpushare.sandbox.apiserver.storage import Record, Store

_STATUS_DOORS = ("status", "finalize", "approval", "ephemeralcontainers", "resize")
"""Subresources that are another way to write the object itself."""
_JSON_PATCH, _MERGE_PATCH = "application/json-patch+json", "application/merge-patch+json"
_STRATEGIC_PATCH, _APPLY_PATCH = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
_PATCHES = (_JSON_PATCH, _MERGE_PATCH, _STRATEGIC_PATCH, _APPLY_PATCH)
_REVIEW_GROUPS = ("authentication.k8s.io", "authorization.k8s.io")
_BINDINGS = ("", "bindings")
_OPTIONS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions", "DELETE": "DeleteOptions"}
_TRIES = 5
"""Of a change, while others change the object at the same time; as many as a real server makes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objects:
    """Answers what is asked about objects of a known kind by somebody who may."""

    registry: Registry
    store: Store
    writer: Reviewed
    deleter: Deleter
    authorizer: Authorizer
    reviewer: Reviewer
    subresources: Subresources

    async def answer(self, resource: Resource, target: Target, request: Request, user: User) -> Answer:
        """The answer to a request. Raises `ApiError`."""
        _check_path(resource, target)
        if target.subresource:
            return await self._answer_subresource(resource, target, request, user)
        if target.verb not in resource.verbs:
            raise statuses.method_not_allowed()
        return await self._answer_object(resource, target, request, user)

    async def _answer_object(self, resource: Resource, target: Target, request: Request, user: User) -> Answer:
        answer: Answer
        match target.verb:
            case "get":
                answer = presenting.one(resource, self._find(resource, target), request)
            case "list":
                answer = Reader(self.store).list(resource, _scope(resource, target), request)
            case "watch":
                answer = watching.watch(self.store, resource, _scope(resource, target), request)
            case "create":
                answer = await self._create(resource, target, request, user)
            case "update":
                answer = await self._change(resource, target, request, user)
            case "patch":
                answer = await self._change(resource, target, request, user)
            case "delete":
                answer = await self._delete(resource, target, request, user)
            case _:
                answer = await self._delete_collection(resource, target, request, user)
        return answer

    async def _answer_subresource(self, resource: Resource, target: Target, request: Request, user: User) -> Answer:
        if target.subresource.partition("/")[0] not in resource.subresources:
            raise statuses.no_such_resource()
        if target.subresource not in _STATUS_DOORS:
            record, write = self._find(resource, target), _write(request, user)
            return await self.subresources.answer(resource, record, target.subresource, request, write)
        match request.method:
            case "PATCH" | "PUT":
                return await self._change(resource, target, request, user)
            case "GET":
                return presenting.one(resource, self._find(resource, target), request)
            case _:
                raise statuses.method_not_allowed()

    async def _change(self, resource: Resource, target: Target, request: Request, user: User) -> Answer:
        """PUT and PATCH. Who names no version wants the change on whatever is there, also where that changes meanwhile."""
        change = self._patch if request.method == "PATCH" else self._replace
        for _ in range(_TRIES - 1):
            with contextlib.suppress(Outdated):
                return await change(resource, target, request, _write(request, user, target.subresource))
        return await change(resource, target, request, _write(request, user, target.subresource))

    def _find(self, resource: Resource, target: Target) -> Record:
        return Reader(self.store).get(resource, _place(resource, target), target.name)

    async def _create(self, resource: Resource, target: Target, request: Request, user: User) -> Answer:
        if target.name:
            raise statuses.method_not_allowed()
        body = bodies.read_object(request, resource)
        if resource.group in _REVIEW_GROUPS:
            review = bodies.check_types(body, resource)
            return Response.of(self.reviewer.answer(review, user, target.namespace), 201)
        write = _write(request, user)
        if resource.key == _BINDINGS:
            return self._bind(target, bodies.check_types(body, resource), write)
        bodies.check_place(body, target.namespace if resource.namespaced else "")
        record = await self.writer.create(resource, target.namespace, body, write)
        return presenting.one(resource, record, request, 201, write.warnings)

    def _bind(self, target: Target, binding: Manifest, write: Write) -> Answer:
        pods, name = self.registry.stored[PODS], (binding.get("metadata") or {}).get("name", "")
        return self.subresources.bind(pods, Reader(self.store).get(pods, target.namespace, name), binding, write)

    async def _replace(self, resource: Resource, target: Target, request: Request, write: Write) -> Answer:
        record = self._find(resource, target)
        body = bodies.read_object(request, resource)
        bodies.check_place(body, record.namespace, record.name)
        metadata = body["metadata"] if isinstance(body.get("metadata"), dict) else {}
        if not metadata.get("resourceVersion") and not resource.unconditional_update:
            cause = field_errors.invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise statuses.invalid(resource.plural, resource.group, record.name, [cause])
        uid = record.object["metadata"]["uid"]
        if (metadata.get("uid") or uid) != uid:
            raise _other_object(resource, record, metadata["uid"])
        changed = await self.writer.update(resource, record, body, write)
        return presenting.one(resource, changed, request, 200, write.warnings)

    async def _patch(self, resource: Resource, target: Target, request: Request, write: Write) -> Answer:
        kind = request.content_type
        if kind not in _PATCHES:
            raise statuses.unsupported_media_type()
        if kind == _APPLY_PATCH:
            return await self._apply(resource, target, request, write)
        if request.flag("force") is not None:
            cause = field_errors.forbidden("force", "may not be specified for non-apply patch")
            raise statuses.invalid("PatchOptions", "meta.k8s.io", "", [cause])
        if kind == _STRATEGIC_PATCH and resource.custom:
            raise statuses.unsupported_patch()
        record = self._find(resource, target)
        patch = bodies.read_patch(request)
        new = _patched(resource, presenting.shown(resource, record), kind, patch)
        bodies.check_place(new, record.namespace, record.name)
        write = replace(write, patched=_quoted(resource, kind, patch, new))
        changed = await self.writer.update(resource, record, new, write)
        return presenting.one(resource, changed, request, 200, write.warnings)

    async def _apply(self, resource: Resource, target: Target, request: Request, write: Write) -> Answer:
        if not request.query.get("fieldManager"):
            cause = field_errors.required("fieldManager", "is required for apply patch")
            raise statuses.invalid("PatchOptions", "meta.k8s.io", "", [cause])
        place = (_place(resource, target), target.name)
        config = bodies.read_applied(request, resource, *place)
        if not write.subresource and self.store.get(resource.key, *place) is None:
            self.authorizer.check(write.user, replace(target, verb="create"))  # another right than to change it
        record, created = await self.writer.apply(resource, place, config, write, force=bool(request.flag("force")))
        return presenting.one(resource, record, request, 201 if created else 200, write.warnings)

    async def _delete(self, resource: Resource, target: Target, request: Request, user: User) -> Answer:
        options, write = DeleteOptions.parse(bodies.read_options(request), request), _write(request, user)
        await self.writer.check_delete(resource, self._find(resource, target), replace(write, dry_run=options.dry_run))
        record, gone = self.deleter.delete(resource, _place(resource, target), target.name, options)
        if gone and not resource.returns_deleted:
            done = statuses.success(resource, record.name, record.object["metadata"]["uid"])
            return Response.of(done, warnings=write.warnings)
        return presenting.one(resource, record, request, 200, write.warnings)

    async def _delete_collection(self, resource: Resource, target: Target, request: Request, user: User) -> Answer:
        options, write = DeleteOptions.parse(bodies.read_options(request), request), _write(request, user)
        records = Reader(self.store).select(resource, _scope(resource, target), request)
        for record in records:
            await self.writer.check_delete(resource, record, replace(write, dry_run=options.dry_run))
            self.deleter.delete(resource, record.namespace, record.name, options)
        return presenting.many(resource, records, request, {"resourceVersion": str(self.store.version)})


def _check_path(resource: Resource, target: Target) -> None:
    """Raises `ApiError` 404 or 405 where there is no such door: nobody deletes the objects of all namespaces at once."""
    if target.namespace and not resource.namespaced and resource.key != NAMESPACES:
        raise statuses.no_such_resource()
    if resource.namespaced and not target.namespace and target.verb not in ("list", "watch"):
        raise statuses.no_such_resource() if target.name else statuses.method_not_allowed()
    if target.verb in ("update", "patch") and not target.name:
        raise statuses.method_not_allowed()


def _place(resource: Resource, target: Target) -> str:
    """The namespace of one object; the path of a namespace names it as its own."""
    return target.namespace if resource.namespaced else ""


def _scope(resource: Resource, target: Target) -> str | None:
    """The namespace of a list; None for all."""
    return target.namespace or None if resource.namespaced else None


def _patched(resource: Resource, shown: Manifest, kind: str, patch: Any) -> Manifest:
    if kind == _JSON_PATCH:
        new = json_patches.apply(shown, patch)
        if not isinstance(new, dict):
            raise statuses.rejected()
        return new
    if not isinstance(patch, dict):
        raise statuses.bad_request(f"error decoding patch: expected an object, got {json.dumps(patch)[:100]}")
    if kind == _MERGE_PATCH:
        return dict(merging.merge_patch(shown, patch))
    return dict(merging.strategic_merge(shown, patch, resource.schema))


def _quoted(resource: Resource, kind: str, patch: Any, new: Manifest) -> str:
    """What a refusal quotes: the patch itself where it is strategic, else the object that it makes."""
    if kind == _STRATEGIC_PATCH:
        return printed(patch)
    return compact(new) if resource.custom else encode(_sorted_where(new, patch)).decode()


def _sorted_where(new: Manifest, patch: Any) -> Manifest:
    """Fields of built-in kinds are sorted only at the depths that a merge patch went to."""
    touched = patch if isinstance(patch, dict) else {}
    return {
        name: _sorted_where(new[name], touched[name]) if isinstance(new[name], dict) and name in touched else new[name]
        for name in sorted(new)
    }


def _other_object(resource: Resource, record: Record, uid: str) -> statuses.ApiError:
    place = "/".join(part for part in (resource.plural, record.namespace, record.name) if part)
    why = (
        f"StorageError: invalid object, Code: 4, Key: /registry/{place}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {uid}, UID in object meta: {record.object['metadata']['uid']}"
    )
    return statuses.conflict(resource, record.name, why)


def _write(request: Request, user: User, subresource: str = "") -> Write:
    _check_options(request)
    return Write(
        manager=request.manager,
        user=user,
        subresource=subresource,
        dry_run=request.dry_run,
        strictness=request.query.get("fieldValidation") or "Warn",
    )


def _check_options(request: Request) -> None:
    """Raises `ApiError` 422: a dry run that is misspelt must not be taken for a real one, nor the other way round."""
    causes = [
        field_errors.unsupported(name, [word] if name == "dryRun" else word, allowed)
        for name, allowed in (("dryRun", ("All",)), ("fieldValidation", ("", "Ignore", "Strict", "Warn")))
        if (word := request.query.get(name)) and word not in allowed
    ]
    if causes:
        raise statuses.invalid(_OPTIONS.get(request.method, ""), "meta.k8s.io", "", causes)
