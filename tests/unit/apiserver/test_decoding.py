"""From what clients send to what is stored."""

from __future__ import annotations

from typing import Any

import pytest

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.objects import decoding
from gpushare.sandbox.apiserver.resources import Resource
from gpushare.sandbox.apiserver.statuses import ApiError


def builtin(kind: str, plural: str, group: str = "") -> Resource:
    return Resource(group=group, version="v1", kind=kind, plural=plural, namespaced=False)


NODE = builtin("Node", "nodes")
POD = builtin("Pod", "pods")
LEASE = builtin("Lease", "leases", "coordination.k8s.io")
WIDGET = Resource(
    group="x.io",
    version="v1",
    kind="Widget",
    plural="widgets",
    namespaced=True,
    definition={
        "spec": {
            "versions": [
                {
                    "name": "v1",
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {
                                    "type": "object",
                                    "properties": {
                                        "size": {"type": "integer"},
                                        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                        "any": {"type": "object", "additionalProperties": {"type": "integer"}},
                                        "list": {"type": "array", "items": {"type": "object", "properties": {"k": {}}}},
                                    },
                                }
                            },
                        }
                    },
                }
            ]
        }
    },
)


def decode(resource: Resource, obj: Manifest, strictness: str = "Strict") -> Any:
    return decoding.decode(resource, obj, strictness, [])


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(
            {"status": {"capacity": {"memory": "536870912Ki"}}},
            {"status": {"capacity": {"memory": "512Gi"}}},
            id="quantity",
        ),
        pytest.param(
            {"status": {"capacity": {"cpu": 64}}}, {"status": {"capacity": {"cpu": "64"}}}, id="quantity as a number"
        ),
        pytest.param({"metadata": {"labels": {}, "name": "n"}}, {"metadata": {"name": "n"}}, id="empty map"),
        pytest.param({"spec": {"taints": []}}, {"spec": {}}, id="empty list"),
        pytest.param({"spec": {"unschedulable": False}}, {"spec": {}}, id="false that is no pointer"),
        pytest.param({"metadata": {"annotations": None}}, {"metadata": {}}, id="null"),
        pytest.param({"metadata": {"labels": {"a": ""}}}, {"metadata": {"labels": {"a": ""}}}, id="empty label value"),
        pytest.param(
            {"metadata": {"creationTimestamp": "2026-11-01T01:00:00.5+01:00"}},
            {"metadata": {"creationTimestamp": "2026-11-01T00:00:00Z"}},
            id="time",
        ),
    ],
)
def test_stored_form(obj: Manifest, expected: Manifest) -> None:
    """Values come out as Go would write them again."""
    assert expected == decode(NODE, obj)


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        pytest.param(
            {"metadata": {"labels": {"x": 5}}},
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
            id="label",
        ),
        pytest.param(
            {"metadata": {"labels": ["x"]}},
            "json: cannot unmarshal array into Go struct field ObjectMeta.metadata.labels of type map[string]string",
            id="map",
        ),
        pytest.param(
            {"spec": {"taints": [{"key": True}]}},
            "json: cannot unmarshal bool into Go struct field Taint.spec.taints.key of type string",
            id="in a list",
        ),
        pytest.param(
            {"spec": "x"},
            "json: cannot unmarshal string into Go struct field Node.spec of type v1.NodeSpec",
            id="struct",
        ),
        pytest.param(
            {"status": {"capacity": {"nvidia.com/gpu": "x"}}},
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            id="quantity",
        ),
        pytest.param(
            {"metadata": {"creationTimestamp": "nonsense"}},
            'parsing time "nonsense" as "2006-01-02T15:04:05Z07:00": cannot parse "nonsense" as "2006"',
            id="time",
        ),
    ],
)
def test_wrong_type(obj: Manifest, message: str) -> None:
    """A wrong type is 400 in a whole object, and 422 with the object in the text when a patch made it."""
    with pytest.raises(ApiError) as caught:
        decode(NODE, obj)
    assert (caught.value.code, caught.value.message) == (
        400, f'Node in version "v1" cannot be handled as a Node: {message}',
    )  # fmt: skip

    with pytest.raises(ApiError) as caught:
        decoding.decode(NODE, obj, "Warn", [], patched='{"a":"b"}')
    assert (caught.value.code, caught.value.message) == (
        422, f' "" is invalid: patch: Invalid value: "{{\\"a\\":\\"b\\"}}": {message}',
    )  # fmt: skip


def test_times_with_microseconds() -> None:
    """Leases insist on six digits, which a wrong client learns from the text."""
    lease = {"spec": {"renewTime": "2026-11-01T00:00:00.000000Z", "leaseDurationSeconds": 0}}
    assert decode(LEASE, lease) == lease
    with pytest.raises(ApiError, match=r'as "2006-01-02T15:04:05\.000000Z07:00": cannot parse "Z" as "\.000000"'):
        decode(LEASE, {"spec": {"renewTime": "2026-11-01T00:00:00Z"}})


@pytest.mark.parametrize(
    ("resource", "obj", "path"),
    [
        pytest.param(NODE, {"spec": {"bogus": 1}}, "spec.bogus", id="built in"),
        pytest.param(
            POD, {"spec": {"containers": [{"name": "c", "imag": "i"}]}}, "spec.containers[0].imag", id="in a list"
        ),
        pytest.param(NODE, {"metadata": {"label": {}}}, "metadata.label", id="metadata"),
        pytest.param(WIDGET, {"spec": {"sizes": 1}}, "spec.sizes", id="custom"),
        pytest.param(WIDGET, {"metadata": {"label": {}}}, "metadata.label", id="metadata of a custom resource"),
        pytest.param(WIDGET, {"spec": {"list": [{"x": 1}]}}, "spec.list[0].x", id="list of a custom resource"),
    ],
)
def test_unknown_fields(resource: Resource, obj: Manifest, path: str) -> None:
    """What nobody knows is refused, reported or dropped, as the client wants it; never stored."""
    with pytest.raises(ApiError) as caught:
        decode(resource, obj)
    assert caught.value.message.endswith(f'strict decoding error: unknown field "{path}"')

    warnings: list[str] = []
    decoded = decoding.decode(resource, obj, "Warn", warnings)
    assert warnings == [f'unknown field "{path}"']
    assert path.rpartition(".")[2] not in str(decoded)
    assert decoded == decode(resource, obj, "Ignore")


def test_free_fields_are_kept() -> None:
    """What a schema leaves open is stored as it is, and shared with nobody."""
    spec = {"size": 1, "free": {"bogus": {"x": None}}, "any": {"a": 1}}
    decoded = decode(WIDGET, {"spec": spec, "metadata": {"name": "w"}})

    assert decoded == {"spec": spec, "metadata": {"name": "w"}}
    assert decoded["spec"]["free"] is not spec["free"]


@pytest.mark.parametrize("default", ["", [], {}, False, 0, "x"])
def test_defaults_of_definitions_are_kept(default: Any) -> None:
    """A default may be anything, the empty text too."""
    crd = builtin("CustomResourceDefinition", "customresourcedefinitions", "apiextensions.k8s.io")
    schema = {"properties": {"a": {"default": default, "nullable": True}}}
    obj = {"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}}

    assert decode(crd, obj) == obj


def test_secrets_hold_base64() -> None:
    """Bytes that are none are refused."""
    with pytest.raises(ApiError, match="illegal base64 data at input byte 1"):
        decode(builtin("Secret", "secrets"), {"data": {"a": "x*"}})
