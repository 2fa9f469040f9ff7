"""The shipped definitions."""

from __future__ import annotations

import pytest

from gpushare.sandbox.apiserver import kinds
from gpushare.sandbox.apiserver.objects import schemas


def test_every_served_kind_has_a_definition() -> None:
    """No built-in kind is served without its schema."""
    missing = [
        resource.kind
        for resource in kinds.built_in()
        if schemas.definition((resource.group, resource.version, resource.kind)) is schemas.ANYTHING
    ]
    assert missing == []


@pytest.mark.parametrize(
    ("path", "key"),
    [
        pytest.param(("spec", "containers"), "name", id="containers"),
        pytest.param(("spec", "tolerations"), "", id="atomic"),
        pytest.param(("status", "conditions"), "type", id="conditions"),
    ],
)
def test_merge_keys(path: tuple[str, ...], key: str) -> None:
    """Patches and server-side apply find what lists are keyed by."""
    schema = schemas.definition(("", "v1", "Pod"))
    for step in path:
        schema = schema.child(step)

    assert schema.patch_key == key
    assert schema.list_keys == ((key,) if key else ())


def test_children_are_resolved_once() -> None:
    """Asking again costs nothing."""
    pod = schemas.definition(("", "v1", "Pod"))

    assert pod.child("spec") is schemas.definition(("", "v1", "Pod")).child("spec")
    assert pod.child("metadata").child("labels").child("a") is pod.child("metadata").child("labels").child("b")
    assert pod.child("nope") is schemas.ANYTHING


def test_recursive_definitions() -> None:
    """A schema inside a schema has no end, and needs none."""
    crd = schemas.definition(("apiextensions.k8s.io", "v1", "CustomResourceDefinition"))
    schema = crd.child("spec").child("versions").items.child("schema").child("openAPIV3Schema")
    for _ in range(20):
        schema = schema.child("properties").child("x")

    assert schema.declares("properties")


def test_components() -> None:
    """An OpenAPI page holds all that it refers to, with texts."""
    name = schemas.definition_name(("", "v1", "Node"))
    assert name is not None
    page = schemas.components([name])

    assert page[name]["description"].startswith("Node is a worker node")
    assert page["io.k8s.api.core.v1.NodeSpec"]["properties"]["unschedulable"]["description"]
    references = {ref.rpartition("/")[2] for ref in _references(page)}
    assert references <= page.keys()


def test_custom_kinds_have_metadata() -> None:
    """Whatever a custom schema says, metadata is that of every object."""
    schema = schemas.custom({"type": "object", "properties": {"metadata": {"type": "object"}}})

    assert schema.child("metadata").definition == schemas.OBJECT_META


def _references(node: object) -> list[str]:
    if isinstance(node, list):
        return [ref for item in node for ref in _references(item)]
    if isinstance(node, dict):
        own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return own + [ref for item in node.values() for ref in _references(item)]
    return []
