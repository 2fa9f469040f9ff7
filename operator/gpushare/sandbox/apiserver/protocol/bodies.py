"""Bodies of writes: read as what the kind's door expects, refused in a real server's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import statuses
from gpushare.sandbox.apiserver.objects import decoding
from gpushare.sandbox.apiserver.protocol import protobuf
from gpushare.sandbox.apiserver.requests import JSON, PROTOBUF, YAML, Request
from gpushare.sandbox.apiserver.resources import Resource

_OBJECT_TYPES = ("", JSON, YAML, PROTOBUF, "text/yaml", "application/x-www-form-urlencoded")


def read_typed(request: Request, resource: Resource) -> Manifest:
    """A body of a kind that is used at once rather than stored, its types checked. Raises `ApiError` 400 and 415."""
    return check_types(read_object(request, resource), resource)


def check_types(obj: Manifest, resource: Resource) -> Manifest:
    """An object in which every value has the type that its kind says. Raises `ApiError` 400."""
    obj = {**obj, "metadata": obj.get("metadata") or {}}
    return decoding.decode(resource, obj, "Ignore", [])


def read_object(request: Request, resource: Resource) -> Manifest:
    """The object of a POST or PUT; one that names no kind is taken for the resource's. Raises `ApiError` 400 and 415."""
    api_version, kind = resource.api_version, resource.kind
    if request.content_type not in _OBJECT_TYPES:
        raise statuses.unsupported_media_type()
    obj = _parsed(request, kind)
    if not isinstance(obj, dict) or not all(isinstance(obj.get(name, ""), str) for name in ("kind", "apiVersion")):
        raise statuses.bad_request(
            f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind"
        )
    found, version = obj.get("kind") or kind, obj.get("apiVersion") or api_version
    if found != kind:
        why = f"converting ({_go_type(version, found)}) to ({_internal_type(api_version, kind)}): unknown conversion"
        raise statuses.bad_request(
            f'{found} in version "{version.rpartition("/")[2]}" cannot be handled as a {kind}: {why}'
        )
    if version != api_version:
        raise statuses.bad_request(
            f"the API version in the data ({version}) does not match the expected API version ({api_version})"
        )
    return {**obj, "apiVersion": api_version, "kind": kind}


def read_options(request: Request) -> Manifest:
    """DeleteOptions of a DELETE, their types checked; empty without a body. Raises `ApiError` 400."""
    options = _parsed(request, "DeleteOptions") if request.body else None
    return decoding.decode_options(options if isinstance(options, dict) else {})


def read_patch(request: Request) -> Any:
    """The body of a PATCH. Raises `ApiError` 400."""
    if not request.body:
        raise statuses.bad_request("error decoding patch: unexpected end of JSON input")
    try:
        return request.parsed()
    except ValueError as error:
        raise statuses.bad_request(f"error decoding patch: {error}") from None


def read_applied(request: Request, resource: Resource, namespace: str, name: str) -> Manifest:
    """The configuration of a server-side apply. Raises `ApiError` 400."""
    body = read_patch(request)
    config: Manifest = body if isinstance(body, dict) else {}
    if (config.get("apiVersion"), config.get("kind")) != (resource.api_version, resource.kind):
        group, _, version = str(config.get("apiVersion", "")).rpartition("/")
        raise statuses.bad_request(f"invalid object type: {group}/{version}, Kind={config.get('kind', '')}")
    metadata = config.get("metadata")
    config = {**config, "metadata": metadata if isinstance(metadata, dict) else {}}
    if "managedFields" in config["metadata"]:
        raise statuses.bad_request("metadata.managedFields must be nil")
    check_place(config, namespace, name)
    return config


def check_place(obj: Mapping[str, Any], namespace: str, name: str = "") -> None:
    """Raises `ApiError` 400 when an object names itself or its namespace otherwise than its URL does, where that does."""
    metadata = obj.get("metadata")
    about = metadata if isinstance(metadata, dict) else {}
    found = about.get("name")
    if name and found and found != name:
        raise statuses.bad_request(f"the name of the object ({found}) does not match the name on the URL ({name})")
    if namespace and (about.get("namespace") or namespace) != namespace:
        raise statuses.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def _parsed(request: Request, kind: str) -> Any:
    if request.content_type == PROTOBUF:
        return protobuf.decode(request.body)
    if request.body.strip():
        try:
            return request.parsed()
        except ValueError:
            pass
    shown = request.body.decode(errors="replace") or "<empty>"
    raise statuses.bad_request(
        f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: "
        f"unexpected end of JSON input ({shown})"
    )


def _go_type(api_version: str, kind: str) -> str:
    return f"{api_version.rpartition('/')[2]}.{kind}"


def _internal_type(api_version: str, kind: str) -> str:
    group = api_version.rpartition("/")[0]
    return f"{group.partition('.')[0] or 'core'}.{kind}"
