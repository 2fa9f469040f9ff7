"""What kinds there are: the aggregated form that kubectl asks for, and the older pages that kopf and others read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpushare.sandbox.apiserver import statuses
from gpushare.sandbox.apiserver.objects.jsonvalues import encode
from gpushare.sandbox.apiserver.requests import JSON, Request, Response
from gpushare.sandbox.apiserver.resources import Registry, Resource

_AGGREGATED = "g=apidiscovery.k8s.io;v=v2;"
_WRITE_BACK = ("get", "patch", "update")
_CONNECT = ("create", "get")
_SUBRESOURCE_VERBS: Mapping[str, tuple[str, ...]] = {
    "attach": _CONNECT, "binding": ("create",), "eviction": ("create",), "exec": _CONNECT, "finalize": ("update",),
    "log": ("get",), "portforward": _CONNECT, "proxy": ("create", "delete", "get", "patch", "update"), "token": ("create",),
}  # fmt: skip
_SUBRESOURCE_KINDS: Mapping[str, tuple[str, str, str]] = {
    "attach": ("", "v1", "PodAttachOptions"), "binding": ("", "v1", "Binding"), "eviction": ("policy", "v1", "Eviction"),
    "exec": ("", "v1", "PodExecOptions"), "portforward": ("", "v1", "PodPortForwardOptions"),
    "scale": ("autoscaling", "v1", "Scale"), "token": ("authentication.k8s.io", "v1", "TokenRequest"),
}  # fmt: skip


def answer(registry: Registry, request: Request) -> Response:
    """Answers `/api`, `/apis`, `/apis/<group>` and `/apis/<group>/<version>`. Raises `ApiError` 404."""
    match [part for part in request.path.split("/") if part]:
        case ["api" | "apis" as root] if _AGGREGATED in request.headers.get("accept", "").replace(" ", ""):
            return _aggregated(registry, core=root == "api")
        case ["api"]:
            return Response.of({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
        case ["apis"]:
            groups = [_legacy_group(registry, group) for group in registry.groups if group]
            return Response.of({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        case ["apis", group]:
            return Response.of({"kind": "APIGroup", "apiVersion": "v1", **_legacy_group(registry, group)})
        case ["api", version]:
            return Response.of(_legacy_resources(registry, "", version))
        case ["apis", group, version]:
            return Response.of(_legacy_resources(registry, group, version))
        case _:
            raise statuses.no_such_resource()


def _aggregated(registry: Registry, *, core: bool) -> Response:
    items = [
        {
            "metadata": {"name": group} if group else {},
            "versions": [
                {
                    "version": name,
                    "resources": list(map(_entry, registry.versions(group, name))),
                    "freshness": "Current",
                }
                for name in versions
            ],
        }
        for group, versions in registry.groups.items()
        if (group == "") is core
    ]
    content = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}
    return Response(encode(content) + b"\n", content_type=f"{JSON};{_AGGREGATED}as=APIGroupDiscoveryList")


def _entry(resource: Resource) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "resource": resource.plural, "responseKind": _type(resource.group, resource.version, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster", "singularResource": resource.singular,
        **_names(resource),
    }  # fmt: skip
    if resource.subresources:
        entry["subresources"] = [
            {"subresource": name, "responseKind": _type(*_subresource_kind(resource, name)), "verbs": _verbs(name)}
            for name in resource.subresources
        ]
    return entry


def _names(resource: Resource) -> dict[str, Any]:
    names = {"shortNames": resource.short_names, "categories": resource.categories}
    return {"verbs": resource.verbs, **{key: value for key, value in names.items() if value}}


def _type(group: str, version: str, kind: str) -> dict[str, str]:
    return {"group": group, "version": version, "kind": kind}


def _subresource_kind(resource: Resource, name: str) -> tuple[str, str, str]:
    own = f"{resource.kind}ProxyOptions" if name == "proxy" else resource.kind
    return _SUBRESOURCE_KINDS.get(name, (resource.group, resource.version, own))


def _verbs(subresource: str) -> tuple[str, ...]:
    return _SUBRESOURCE_VERBS.get(subresource, _WRITE_BACK)


def _legacy_group(registry: Registry, group: str) -> dict[str, Any]:
    versions = registry.groups.get(group)
    if not group or not versions:
        raise statuses.no_such_resource()
    entries = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": entries, "preferredVersion": entries[0]}


def _legacy_resources(registry: Registry, group: str, version: str) -> dict[str, Any]:
    found = registry.versions(group, version)
    entries = [entry for resource in found for entry in _legacy_entries(resource)]
    return {
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": found[0].api_version, "resources": entries,
    }  # fmt: skip


def _legacy_entries(resource: Resource) -> list[dict[str, Any]]:
    entries = [
        {"name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced, "kind": resource.kind,
         **_names(resource)},
    ]  # fmt: skip
    for name in resource.subresources:
        group, version, kind = _subresource_kind(resource, name)
        place = {} if (group, version) == (resource.group, resource.version) else {"group": group, "version": version}
        entries.append({"name": f"{resource.plural}/{name}", "singularName": "", "namespaced": resource.namespaced,
                        "kind": kind, "verbs": _verbs(name), **place})  # fmt: skip
    return entries
