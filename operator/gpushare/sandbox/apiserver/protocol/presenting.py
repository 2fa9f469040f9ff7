"""The forms in which objects are shown: JSON, or a Table for `kubectl get`.

Clients that would rather have protobuf, YAML or metadata alone accept JSON too, which is what they get.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import statuses
from gpushare.sandbox.apiserver.objects.jsonvalues import encode
from gpushare.sandbox.apiserver.requests import JSON, PROTOBUF, Request, Response, warning_headers
from gpushare.sandbox.apiserver.resources import Resource
from gpushare.sandbox.apiserver.storage import Record
from gpushare.sandbox.apiserver.tables import building

_META = "meta.k8s.io/v1"


def wants_table(request: Request) -> bool:
    """Whether a client would rather have a Table. Raises `ApiError` 406 when it takes nothing that there is."""
    return _wants_table(request.headers.get("accept", "*/*"))


@lru_cache(maxsize=256)
def _wants_table(accept: str) -> bool:
    for wanted in accept.split(","):
        media_type, *parameters = (part.strip() for part in wanted.split(";"))
        if media_type in (JSON, "application/*", "*/*"):
            if "as=Table" not in parameters:
                return False
            if "v=v1" in parameters:
                return True
    if accept.strip() != PROTOBUF:
        raise statuses.not_acceptable()
    return False


def one(
    resource: Resource, record: Record, request: Request, code: int = 200, warnings: Sequence[str] = ()
) -> Response:
    """An answer with one object."""
    if wants_table(request):
        return Response.of(table(resource, [record], request, {"resourceVersion": str(record.version)}), code, warnings)
    return Response(encoded(resource, record) + b"\n", code, headers=warning_headers(warnings))


def many(resource: Resource, records: Sequence[Record], request: Request, metadata: Mapping[str, Any]) -> Response:
    """An answer with a list; `metadata` holds the version, and how to go on."""
    if wants_table(request):
        return Response.of(table(resource, records, request, metadata))
    return Response(_list(resource, records, metadata) + b"\n")


def table(resource: Resource, records: Sequence[Record], request: Request, metadata: Mapping[str, Any]) -> Manifest:
    """Objects as a Table, with as much of the objects as the client wants to have in it."""
    include = request.query.get("includeObject", "Metadata")
    built = building.build(resource, [record.object for record in records])
    for row, record in zip(built["rows"], records, strict=True):
        if include == "Object":
            row["object"] = shown(resource, record)
        elif include != "None":
            row["object"] = {
                "kind": "PartialObjectMetadata",
                "apiVersion": _META,
                "metadata": record.object["metadata"],
            }
    return {"kind": "Table", "apiVersion": _META, "metadata": dict(metadata), **built}


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


def _list(resource: Resource, records: Sequence[Record], metadata: Mapping[str, Any]) -> bytes:
    if resource.custom or resource.view:
        items = b",".join(encoded(resource, record) for record in records)
    else:
        # Items of built-in kinds carry neither kind nor version: clients know both from the list.
        items = b",".join(record.body for record in records)
    kind = f"{resource.kind}List"
    if resource.definition:
        kind = resource.definition["spec"]["names"].get("listKind") or kind
        head = encode({"apiVersion": resource.api_version, "items": 0})
        tail = encode({"kind": kind, "metadata": {"continue": "", **metadata}})
        return head[:-2] + b"[" + items + b"]," + tail[1:]
    head = encode({"kind": kind, "apiVersion": resource.api_version, "metadata": metadata, "items": 0})
    return head[:-2] + b"[" + items + b"]}"


@lru_cache(maxsize=512)
def _prefix(api_version: str, kind: str, custom: bool) -> bytes:  # noqa: FBT001 - part of the cache's key
    head = {"apiVersion": api_version, "kind": kind} if custom else {"kind": kind, "apiVersion": api_version}
    return encode(head)[:-1] + b","
