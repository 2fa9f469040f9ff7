"""The forms in which objects are shown: JSON, YAML, a Table for `kubectl get`, metadata only."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any

import yaml

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import statuses
from gpushare.sandbox.apiserver.requests import JSON, PROTOBUF, YAML, Request, Response, warning_headers
from gpushare.sandbox.apiserver.resources import Resource
from gpushare.sandbox.apiserver.storage import Record, encode
from gpushare.sandbox.apiserver.tables import building

_META = "meta.k8s.io/v1"


class Form(Enum):
    """What a client asked for in its Accept header."""

    JSON = "json"
    YAML = "yaml"
    TABLE = "table"
    METADATA = "metadata"


def negotiate(request: Request) -> Form:
    """The first form in the Accept header that the server has. Raises `ApiError` 406 when it has none.

    Clients that prefer protobuf accept JSON too, which is what they get.
    """
    return _negotiate(request.headers.get("accept", "*/*"))


@lru_cache(maxsize=256)
def _negotiate(accept: str) -> Form:
    for wanted in re.split(r"\s*,\s*", accept.strip()):
        media_type, *parameters = re.split(r"\s*;\s*", wanted)
        if media_type in (JSON, "application/*", "*/*"):
            form = _json_form(parameters)
            if form is not None:
                return form
        elif media_type == YAML:
            return Form.YAML
    if accept.strip() == PROTOBUF:
        return Form.JSON
    raise statuses.not_acceptable()


def _json_form(parameters: Sequence[str]) -> Form | None:
    values = dict(part.split("=", 1) for part in parameters if "=" in part)
    kind = values.get("as", "")
    if kind == "Table":
        return Form.TABLE if values.get("v") == "v1" else None
    if kind in ("PartialObjectMetadata", "PartialObjectMetadataList"):
        return Form.METADATA
    return None if kind else Form.JSON


def one(
    resource: Resource, record: Record, request: Request, code: int = 200, warnings: Sequence[str] = ()
) -> Response:
    """An answer with one object."""
    form = negotiate(request)
    if form is Form.JSON:
        return Response(encoded(resource, record) + b"\n", code, headers=warning_headers(warnings))
    if form is Form.YAML:
        text = yaml.safe_dump(shown(resource, record), allow_unicode=True)
        return Response(text.encode(), code, content_type=YAML)
    return Response.of(transformed(resource, [record], form, request, record.version), code, warnings)


def many(resource: Resource, records: Sequence[Record], request: Request, metadata: Mapping[str, Any]) -> Response:
    """An answer with a list; `metadata` holds the version, and how to go on."""
    form = negotiate(request)
    if form is Form.TABLE:
        return Response.of(table(resource, records, request, metadata))
    if form is Form.METADATA:
        items = [_metadata(record) for record in records]
        return Response.of(
            {"kind": "PartialObjectMetadataList", "apiVersion": _META, "metadata": metadata, "items": items}
        )
    if form is Form.YAML:
        content = {"apiVersion": resource.api_version, "items": [shown(resource, record) for record in records],
                   "kind": f"{resource.kind}List", "metadata": dict(metadata)}  # fmt: skip
        return Response(yaml.safe_dump(content, allow_unicode=True).encode(), content_type=YAML)
    return Response(_list(resource, records, metadata) + b"\n")


def shown(resource: Resource, record: Record) -> Manifest:
    """The object as this kind and version shows it."""
    if resource.view:
        return resource.view.show(record.object)
    if record.object["apiVersion"] == resource.api_version:
        return record.object
    return {**record.object, "apiVersion": resource.api_version}


def encoded(resource: Resource, record: Record) -> bytes:
    """The object as JSON; made once a version, whoever asks."""
    if resource.view:
        return encode(shown(resource, record))
    return prefix(resource) + record.body[1:]


def prefix(resource: Resource) -> bytes:
    """How the JSON of each object of this kind begins."""
    return _prefix(resource.api_version, resource.kind, resource.custom)


def transformed(
    resource: Resource, records: Sequence[Record], form: Form, request: Request, version: int, *, columns: bool = True
) -> Manifest:
    """Objects as a Table, or the only one as metadata."""
    if form is Form.METADATA:
        return _metadata(records[0])
    answer = table(resource, records, request, {"resourceVersion": str(version)})
    return answer if columns else {**answer, "columnDefinitions": None}


def table(resource: Resource, records: Sequence[Record], request: Request, metadata: Mapping[str, Any]) -> Manifest:
    """Objects as a Table, with as much of the objects as the client wants to have in it."""
    include = request.query.get("includeObject", "Metadata")
    built = building.build(resource, [record.object for record in records])
    for row, record in zip(built["rows"], records, strict=True):
        if include == "Object":
            row["object"] = shown(resource, record)
        elif include != "None":
            row["object"] = _metadata(record)
    return {"kind": "Table", "apiVersion": _META, "metadata": dict(metadata), **built}


def _metadata(record: Record) -> Manifest:
    return {"kind": "PartialObjectMetadata", "apiVersion": _META, "metadata": record.object["metadata"]}


def _list(resource: Resource, records: Sequence[Record], metadata: Mapping[str, Any]) -> bytes:
    if resource.custom or resource.view:
        items = b",".join(encoded(resource, record) for record in records)
    else:
        # Items of built-in kinds carry neither kind nor version: clients know both from the list.
        items = b",".join(record.body for record in records)
    kind = f"{resource.kind}List"
    if resource.custom:
        kind = resource.definition["spec"]["names"].get("listKind") or kind if resource.definition else kind
        head = encode({"apiVersion": resource.api_version, "items": 0})
        tail = encode({"kind": kind, "metadata": {"continue": "", **metadata}})
        return head[:-2] + b"[" + items + b"]," + tail[1:]
    head = encode({"kind": kind, "apiVersion": resource.api_version, "metadata": metadata, "items": 0})
    return head[:-2] + b"[" + items + b"]}"


@lru_cache(maxsize=512)
def _prefix(api_version: str, kind: str, custom: bool) -> bytes:  # noqa: FBT001 - part of the cache's key
    head = {"apiVersion": api_version, "kind": kind} if custom else {"kind": kind, "apiVersion": api_version}
    return encode(head)[:-1] + b","
