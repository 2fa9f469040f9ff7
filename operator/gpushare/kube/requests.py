"""Requests to the API server as values, one builder a verb. Pure; used by `rest`, and so by both clients."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

from gpushare.domain import manifests
from gpushare.domain.manifests import Kind, Manifest
from gpushare.kube.cluster import PatchType

_JSON = "application/json"
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io, application/json"
"""A table has a name and a few columns where the object has kilobytes."""
_APPLY = "application/apply-patch+yaml"
"""The name says YAML; JSON is YAML, and every server since 1.16 takes it."""
_PARENTS = {
    "binding": manifests.POD,
    "eviction": manifests.POD,
    "token": manifests.SERVICE_ACCOUNT,
}
"""Subresources whose body is of another kind than the object that they belong to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request to the API server, without address and credentials."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    """JSON; None: no body."""
    content_type: str = ""
    accept: str = _JSON

    @property
    def target(self) -> str:
        """Path and query, as they stand in the request line."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path

    @property
    def payload(self) -> bytes:
        """The body as it goes over the wire."""
        return b"" if self.body is None else json.dumps(self.body, separators=(",", ":")).encode()

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def _given(**query: str) -> dict[str, str]:
    return {key: value for key, value in query.items() if value}


def build_get(kind: Kind, name: str, namespace: str) -> Request:
    """One object."""
    return Request(method="GET", path=kind.path(namespace, name))


def build_list(
    kind: Kind, namespace: str, *, labels: str = "", fields: str = "", limit: int = 0, after: str = ""
) -> Request:
    """A page of `limit` objects after the continue token `after`; 0: all at once."""
    query = _given(labelSelector=labels, fieldSelector=fields, limit=str(limit or ""))
    # Not through `_given`, which would let a keyword of Python stand as a name.
    if after:
        query["continue"] = after
    return Request(method="GET", path=kind.path(namespace), query=query)


def build_names(kind: Kind, namespace: str, *, labels: str, limit: int, after: str) -> Request:
    """As `build_list`, for the table that kubectl prints, without the objects in it."""
    page = build_list(kind, namespace, labels=labels, limit=limit, after=after)
    return replace(page, query={**page.query, "includeObject": "None"}, accept=_TABLE)


def build_watch(
    kind: Kind, namespace: str, *, labels: str, fields: str, resource_version: str, timeout_seconds: int
) -> Request:
    """A watch that the server ends by itself after `timeout_seconds`, with bookmarks on the way."""
    query = _given(
        watch="true",
        allowWatchBookmarks="true",
        labelSelector=labels,
        fieldSelector=fields,
        resourceVersion=resource_version,
        timeoutSeconds=str(timeout_seconds),
    )
    return Request(method="GET", path=kind.path(namespace), query=query)


def build_create(manifest: Manifest, *, subresource: str, name: str) -> Request:
    """A POST to the collection, or to a subresource of the object `name`."""
    kind = _PARENTS[subresource] if subresource in _PARENTS else manifests.kind_of(manifest)
    path = kind.path(_namespace_of(manifest), name if subresource else "", subresource)
    return Request(method="POST", path=path, body=manifest, content_type=_JSON)


def build_apply(manifest: Manifest, *, manager: str, force: bool, subresource: str) -> Request:
    """A server-side apply."""
    return Request(
        method="PATCH",
        path=_path_of(manifest, subresource),
        query=_given(fieldManager=manager, force="true" if force else "false"),
        body=manifest,
        content_type=_APPLY,
    )


def build_patch(path: str, body: Any, patch_type: PatchType) -> Request:
    """A patch of one of the three formats."""
    return Request(method="PATCH", path=path, body=body, content_type=patch_type.value)


def build_replace(manifest: Manifest, *, subresource: str) -> Request:
    """A PUT."""
    return Request(method="PUT", path=_path_of(manifest, subresource), body=manifest, content_type=_JSON)


def build_delete(path: str, *, uid: str, grace_seconds: int | None) -> Request:
    """A DELETE in the background, which is not the default for every kind (Jobs would leave their pods)."""
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
    if uid:
        options["preconditions"] = {"uid": uid}
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    return Request(method="DELETE", path=path, body=options, content_type=_JSON)


def _namespace_of(manifest: Manifest) -> str:
    return str(manifest.get("metadata", {}).get("namespace", ""))


def _path_of(manifest: Manifest, subresource: str) -> str:
    key = manifests.key_of(manifest)
    return key.kind.path(key.namespace, key.name, subresource)
