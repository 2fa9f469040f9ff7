"""What kinds there are: the aggregated form that kubectl asks for, and the older pages that kopf and others read."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from typing import Any

from gpushare.sandbox.apiserver import statuses
from gpushare.sandbox.apiserver.requests import JSON, Request, Response
from gpushare.sandbox.apiserver.resources import Registry, Resource
from gpushare.sandbox.apiserver.storage import encode

_AGGREGATED = re.compile(r"g=apidiscovery\.k8s\.io")
_VERSION = re.compile(r"v=(v2(?:beta1)?)(?:;|$)")
_WRITE_BACK = ("get", "patch", "update")
_SUBRESOURCE_VERBS: Mapping[str, tuple[str, ...]] = {
    "attach": ("create", "get"), "binding": ("create",), "eviction": ("create",), "exec": ("create", "get"),
    "finalize": ("update",), "log": ("get",), "portforward": ("create", "get"), "token": ("create",),
    "proxy": ("create", "delete", "get", "patch", "update"),
}  # fmt: skip
_SUBRESOURCE_KINDS: Mapping[str, tuple[str, str, str]] = {
    "attach": ("", "v1", "PodAttachOptions"), "binding": ("", "v1", "Binding"), "eviction": ("policy", "v1", "Eviction"),
    "exec": ("", "v1", "PodExecOptions"), "portforward": ("", "v1", "PodPortForwardOptions"),
    "scale": ("autoscaling", "v1", "Scale"), "token": ("authentication.k8s.io", "v1", "TokenRequest"),
}  # fmt: skip
_PROXY_KINDS = {"nodes": "NodeProxyOptions", "pods": "PodProxyOptions", "services": "ServiceProxyOptions"}


def answer(registry: Registry, request: Request) -> Response:
    """Answers `/api`, `/apis`, `/apis/<group>` and `/apis/<group>/<version>`. Raises `ApiError` 404."""
    parts = [part for part in request.path.split("/") if part]
    match parts:
        case ["api"] | ["apis"]:
            wanted = _wanted(request)
            if wanted:
                return _aggregated(registry, wanted, core=parts == ["api"])
            return Response.of(_legacy_versions() if parts == ["api"] else _legacy_groups(registry))
        case ["api", version]:
            return Response.of(_legacy_resources(registry, "", version))
        case ["apis", group]:
            return Response.of(_legacy_group(registry, group))
        case ["apis", group, version]:
            return Response.of(_legacy_resources(registry, group, version))
        case _:
            raise statuses.no_such_resource()


def _wanted(request: Request) -> str:
    """The version of the aggregated form that a client accepts; empty for the older form."""
    for media_type in request.headers.get("accept", "").split(","):
        version = _VERSION.search(media_type.strip())
        if media_type.strip().startswith(JSON) and _AGGREGATED.search(media_type) and version:
            return version[1]
    return ""


def _aggregated(registry: Registry, version: str, *, core: bool) -> Response:
    items = []
    for group, versions in registry.groups().items():
        if (group == "") is core:
            entries = [
                {
                    "version": name,
                    "resources": [_entry(each) for each in registry.versions(group, name)],
                    "freshness": "Current",
                }
                for name in versions
            ]
            items.append({"metadata": {"name": group} if group else {}, "versions": entries})
    content = {
        "kind": "APIGroupDiscoveryList", "apiVersion": f"apidiscovery.k8s.io/{version}", "metadata": {}, "items": items,
    }  # fmt: skip
    media_type = f"{JSON};g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    return Response(encode(content) + b"\n", content_type=media_type)


def _entry(resource: Resource) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "resource": resource.plural,
        "responseKind": _type(resource.group, resource.version, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.subresources:
        entry["subresources"] = [
            {
                "subresource": name,
                "responseKind": _type(*_subresource_kind(resource, name)),
                "verbs": list(_verbs(name)),
            }
            for name in resource.subresources
        ]
    return entry


def _type(group: str, version: str, kind: str) -> dict[str, str]:
    return {"group": group, "version": version, "kind": kind}


def _subresource_kind(resource: Resource, name: str) -> tuple[str, str, str]:
    own = _PROXY_KINDS[resource.plural] if name == "proxy" else resource.kind
    return _SUBRESOURCE_KINDS.get(name, (resource.group, resource.version, own))


def _verbs(subresource: str) -> tuple[str, ...]:
    return _SUBRESOURCE_VERBS.get(subresource, _WRITE_BACK)


def _legacy_versions() -> dict[str, Any]:
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def _legacy_groups(registry: Registry) -> dict[str, Any]:
    groups = [_legacy_group(registry, group, listed=True) for group in registry.groups() if group]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def _legacy_group(registry: Registry, group: str, *, listed: bool = False) -> dict[str, Any]:
    versions = registry.groups().get(group)
    if not group or not versions:
        raise statuses.no_such_resource()
    entries = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    head = {} if listed else {"kind": "APIGroup", "apiVersion": "v1"}
    return {**head, "name": group, "versions": entries, "preferredVersion": entries[0]}


def _legacy_resources(registry: Registry, group: str, version: str) -> dict[str, Any]:
    found = registry.versions(group, version)
    entries = [entry for resource in found for entry in _legacy_entries(resource)]
    return {
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": found[0].api_version, "resources": entries,
    }  # fmt: skip


def _legacy_entries(resource: Resource) -> list[dict[str, Any]]:
    entry: dict[str, Any] = {
        "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
        "kind": resource.kind, "verbs": list(resource.verbs),
    }  # fmt: skip
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if "list" in resource.verbs:
        digest = hashlib.sha256(f"{resource.api_version}/{resource.kind}".encode()).digest()
        entry["storageVersionHash"] = base64.b64encode(digest[:8]).decode()
    return [entry, *(_legacy_subresource(resource, name) for name in resource.subresources)]


def _legacy_subresource(resource: Resource, name: str) -> dict[str, Any]:
    group, version, kind = _subresource_kind(resource, name)
    entry: dict[str, Any] = {
        "name": f"{resource.plural}/{name}", "singularName": "", "namespaced": resource.namespaced, "kind": kind,
        "verbs": list(_verbs(name)),
    }  # fmt: skip
    if (group, version) != (resource.group, resource.version):
        entry |= {"group": group, "version": version}
    return entry
