"""Objects of all built-in kinds, made up along their schemas: whatever the types allow, no module stumbles over it."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from gpushare.sandbox.apiserver import kinds
from gpushare.sandbox.apiserver.handling import pod_admission
from gpushare.sandbox.apiserver.objects import decoding, defaults
from gpushare.sandbox.apiserver.objects.jsonvalues import copied
from gpushare.sandbox.apiserver.objects.schemas import Schema
from gpushare.sandbox.apiserver.patching import applying, managed_fields
from gpushare.sandbox.apiserver.patching.managed_fields import Author
from gpushare.sandbox.apiserver.resources import Resource
from gpushare.sandbox.apiserver.tables import building
from gpushare.sandbox.apiserver.validation import checking

KINDS = [resource for resource in kinds.built_in() if "list" in resource.verbs and not resource.view]
DEPTH = 7
TEXTS = st.sampled_from(["", "a", "a b", "Always", "Ready", "True", "nvidia.com/gpu", "x" * 70])
NOW = datetime(2026, 11, 1, tzinfo=UTC)


SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": TEXTS,
    "integer": st.integers(-1, 70000),
    "number": st.floats(0, 1),
    "boolean": st.booleans(),
}


@cache
def values(schema: Schema, depth: int = DEPTH) -> st.SearchStrategy[Any]:
    """Values of the types that a schema asks for."""
    if schema.is_quantity:
        return st.sampled_from(["0", "1", "500m", "1Gi", 3])
    if schema.is_int_or_string:
        return st.integers(-1, 100) | TEXTS
    if schema.type == "object" and not schema.preserves:
        return objects(schema, depth)
    if schema.type == "array":
        return st.lists(values(schema.items, depth - 1), max_size=2) if depth else st.just([])
    if schema.type == "string" and not schema.is_plain_text:
        return st.sampled_from(["", "YQ=="]) if schema.format == "byte" else st.just("2026-11-01T00:00:00.000000Z")
    return SCALARS.get(schema.type, st.just({"a": 1}))


@cache
def objects(schema: Schema, depth: int) -> st.SearchStrategy[dict[str, Any]]:
    if not depth:
        return st.just({})
    if schema.additional:
        return st.dictionaries(TEXTS, values(schema.child("*"), depth - 1), max_size=2)
    names = sorted(schema.properties.keys() - {"apiVersion", "kind", "managedFields"})
    # A few fields at a time: hypothesis finds which ones matter together.
    chosen = st.lists(st.sampled_from(names), max_size=4, unique=True) if names else st.just([])
    return chosen.flatmap(
        lambda some: st.fixed_dictionaries({name: values(schema.child(name), depth - 1) for name in some})
    )


def manifest(data: st.DataObject, resource: Resource) -> dict[str, Any]:
    schema = resource.schema
    parts = {name: values(schema.child(name)) for name in schema.properties if name in ("spec", "status")}
    obj = data.draw(objects(schema, DEPTH)) | data.draw(st.fixed_dictionaries(parts))
    metadata = {**obj.get("metadata", {}), "name": "x", "uid": "u"}
    return {**obj, "metadata": metadata, "apiVersion": resource.api_version, "kind": resource.kind}


@pytest.mark.parametrize("resource", KINDS, ids=lambda resource: resource.plural)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_object(resource: Resource, data: st.DataObject) -> None:
    """It is decoded, completed, judged, owned and shown; doing each again changes nothing."""
    sent = manifest(data, resource)
    obj = decoding.decode(resource, sent, "Strict", [])
    defaults.apply(obj, resource.schema)
    if resource.kind == "Pod":
        pod_admission.admit(obj, suffix="abcde")

    refused = checking.check(resource, obj)
    applying.track_update(None, obj, resource.schema, Author("m", "", "2026-11-01T00:00:00Z"))
    if not refused:
        building.build(resource, [obj], NOW)

    again = decoding.decode(resource, copied(obj), "Strict", [])
    defaults.apply(again, resource.schema)
    assert again == obj
    checking.check(resource, again, obj)
    applying.track_update(obj, again, resource.schema, Author("n", "", "2026-11-02T00:00:00Z"))
    assert managed_fields.is_unchanged(again, obj)
