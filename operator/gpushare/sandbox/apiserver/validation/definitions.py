"""Rules of CustomResourceDefinitions: names, versions, and that their schemas are structural."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import field_errors
from gpushare.sandbox.apiserver.statuses import Cause

_SCOPES: Final = ("Cluster", "Namespaced")
_IMMUTABLE: Final = "field is immutable"


def check(obj: Manifest) -> Iterator[Cause]:
    """A CustomResourceDefinition."""
    spec = obj.get("spec") or {}
    names, group, name = spec.get("names") or {}, spec.get("group", ""), obj["metadata"]["name"]
    if name != f"{names.get('plural', '')}.{group}":
        yield field_errors.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    if not group:
        yield field_errors.required("spec.group")
    elif "." not in group:
        yield field_errors.invalid("spec.group", group, "should be a domain with at least one dot")
    if spec.get("scope") not in _SCOPES:
        yield field_errors.unsupported("spec.scope", spec.get("scope", ""), _SCOPES)
    for word in ("plural", "kind"):
        if not names.get(word):
            yield field_errors.required(f"spec.names.{word}")
    yield from _check_versions(spec.get("versions") or [])


def check_update(obj: Manifest, old: Manifest) -> Iterator[Cause]:
    """Group, kind, plural and scope stay: objects are stored under them."""
    for path in (("group",), ("scope",), ("names", "kind"), ("names", "plural")):
        value, before = obj.get("spec"), old.get("spec")
        for step in path:
            value, before = (value or {}).get(step), (before or {}).get(step)
        if value != before:
            yield field_errors.invalid(field_errors.at("spec", *path), value, _IMMUTABLE)


def _check_versions(versions: list[Mapping[str, Any]]) -> Iterator[Cause]:
    stored = sum(bool(version.get("storage")) for version in versions)
    if stored != 1:
        why = "must have exactly one version marked as storage version"
        yield field_errors.invalid("spec.versions", versions, why)
    for number, version in enumerate(versions):
        here = field_errors.at("spec.versions", number, "schema", "openAPIV3Schema")
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is None:
            yield field_errors.required(here, "schemas are required")
            continue
        if schema.get("type") != "object":
            why = "must not be empty at the root" if not schema.get("type") else "must be object at the root"
            yield field_errors.required(f"{here}.type", why)
        yield from _check_fields(schema, here)


def _check_schema(schema: Mapping[str, Any], field: str, place: str) -> Iterator[Cause]:
    free = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if not schema.get("type") and not free:
        yield field_errors.required(f"{field}.type", f"must not be empty for specified {place}")
    if schema.get("type") == "array" and "items" not in schema:
        yield field_errors.required(f"{field}.items", "must be specified")
    yield from _check_fields(schema, field)


def _check_fields(schema: Mapping[str, Any], field: str) -> Iterator[Cause]:
    for name, child in sorted((schema.get("properties") or {}).items()):
        yield from _check_schema(child, f"{field}.properties[{name}]", "object fields")
    if isinstance(items := schema.get("items"), Mapping):
        yield from _check_schema(items, f"{field}.items", "array items")
    if isinstance(additional := schema.get("additionalProperties"), Mapping):
        yield from _check_schema(additional, f"{field}.additionalProperties", "object fields")
