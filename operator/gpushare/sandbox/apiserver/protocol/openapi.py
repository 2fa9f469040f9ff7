"""OpenAPI, one page a group and version: what kubectl validates against, and what `kubectl explain` prints."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpushare.sandbox.apiserver import statuses
from gpushare.sandbox.apiserver.objects import schemas
from gpushare.sandbox.apiserver.objects.jsonvalues import encode
from gpushare.sandbox.apiserver.protocol import openapi_v2
from gpushare.sandbox.apiserver.requests import JSON, Request, Response
from gpushare.sandbox.apiserver.resources import Registry, Resource

_PATCH_TYPES = (
    "application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)  # fmt: skip


def _parameter(name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": True}}


_WRITE_PARAMETERS = [
    _parameter("dryRun", "string"),
    _parameter("fieldManager", "string"),
    # Where it is missing, kubectl validates on its own side, with OpenAPI v2 in protobuf.
    _parameter("fieldValidation", "string"),
]
_FORCE = _parameter("force", "boolean")


@dataclass(slots=True)
class OpenApi:
    """Builds pages when they are asked for and keeps them until a CustomResourceDefinition changes."""

    registry: Registry
    version: str
    _pages: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.registry.listeners.append(self._pages.clear)

    def answer(self, request: Request) -> Response:
        """Answers `/openapi/v2`, `/openapi/v3` and the pages below it. Raises `ApiError` 404, 406."""
        if request.path == "/openapi/v2":
            return self._old_document(request)
        path = request.path.strip("/").removeprefix("openapi/v3").strip("/")
        if path:
            return Response(self._page(path))
        addresses = {resource.path: None for resource in self.registry}
        return Response.of({"paths": {path: {"serverRelativeURL": self._address(path)} for path in addresses}})

    def _old_document(self, request: Request) -> Response:
        if openapi_v2.ACCEPTED not in request.headers.get("accept", ""):
            raise statuses.not_acceptable()
        if "v2" not in self._pages:
            self._pages["v2"] = openapi_v2.build(schemas.definitions(), self.version)
        return Response(self._pages["v2"], content_type=openapi_v2.SENT)

    def _address(self, path: str) -> str:
        found = [f"{each.plural} {each.definition and each.definition['metadata']['resourceVersion']}"
                 for each in self.registry if each.path == path]  # fmt: skip
        digest = hashlib.sha256(" ".join(found).encode()).hexdigest()
        return f"/openapi/v3/{path}?hash={digest.upper()}"

    def _page(self, path: str) -> bytes:
        if path not in self._pages:
            found = [resource for resource in self.registry if resource.path == path]
            if not found:
                raise statuses.no_such_resource()
            self._pages[path] = encode(self._build(found)) + b"\n"
        return self._pages[path]

    def _build(self, resources: Iterable[Resource]) -> dict[str, Any]:
        paths: dict[str, Any] = {}
        roots, custom = [schemas.OBJECT_META], {}
        for resource in resources:
            name = _definition_name(resource)
            if resource.custom:
                custom[name] = _custom_component(resource)
            else:
                roots.append(name)
            paths.update(_paths(resource, schemas.component_reference(name)))
        return {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": self.version},
            "paths": paths,
            "components": {"schemas": {**schemas.components(roots), **custom}},
        }


def _definition_name(resource: Resource) -> str:
    gvk = schemas.GroupVersionKind(resource.group, resource.version, resource.kind)
    return schemas.definition_name(gvk) or ".".join(
        [*reversed(resource.group.split(".")), resource.version, resource.kind]
    )


def _custom_component(resource: Resource) -> dict[str, Any]:
    raw = resource.crd_version.get("schema", {}).get("openAPIV3Schema", {})
    properties = {
        **raw.get("properties", {}),
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"allOf": [schemas.component_reference(schemas.OBJECT_META)]},
    }
    return {**raw, "type": "object", "properties": properties, "x-kubernetes-group-version-kind": [_gvk(resource)]}


def _gvk(resource: Resource) -> dict[str, str]:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _paths(resource: Resource, reference: Mapping[str, str]) -> dict[str, Any]:
    collection = f"/{resource.path}/{'namespaces/{namespace}/' if resource.namespaced else ''}{resource.plural}"
    operation = _operations(resource, reference)
    one = {"get": operation("get"), "put": operation("put", _WRITE_PARAMETERS), "delete": operation("delete")}
    # kubectl takes a strategic merge patch wherever it is listed.
    types = _PATCH_TYPES[:-1] if resource.custom else _PATCH_TYPES
    body = {"content": {media_type: {"schema": dict(reference)} for media_type in types}}
    one["patch"] = {**operation("patch", [*_WRITE_PARAMETERS, _FORCE]), "requestBody": body}
    return {
        collection: {"get": operation("list"), "post": operation("post", _WRITE_PARAMETERS)},
        collection + "/{name}": one,
    }


def _operations(resource: Resource, reference: Mapping[str, str]) -> Callable[..., dict[str, Any]]:
    responses = {"200": {"description": "OK", "content": {JSON: {"schema": dict(reference)}}}}

    def operation(action: str, parameters: list[dict[str, Any]] | None = None) -> dict[str, Any]:
        head = {"x-kubernetes-action": action, "x-kubernetes-group-version-kind": _gvk(resource)}
        return {**head, **({"parameters": parameters} if parameters else {}), "responses": responses}

    return operation
