"""What is refused, and the words for it: the smaller kinds, roles, definitions."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import kinds
from gpushare.sandbox.apiserver.validation import checking

BUILT_IN = {(resource.group, resource.kind): resource for resource in kinds.built_in() if resource.version == "v1"}
RBAC = "rbac.authorization.k8s.io"
KEY_TEXT = (
    'data[a b]: Invalid value: "a b": a valid config key must consist of alphanumeric characters, '
    "'-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
CRD = ("apiextensions.k8s.io", "CustomResourceDefinition")


def created(kind: tuple[str, str], obj: Manifest) -> list[str]:
    whole = {**obj, "metadata": {"name": "x", "namespace": "default", **obj.get("metadata", {})}}
    return [str(cause) for cause in checking.check(BUILT_IN[kind], whole)]


def updated(kind: tuple[str, str], old: Manifest, new: Manifest, subresource: str = "") -> list[str]:
    before, after = ({**each, "metadata": {"name": "x"}} for each in (old, new))
    return [str(cause) for cause in checking.check(BUILT_IN[kind], after, before, subresource)]


@pytest.mark.parametrize(
    ("kind", "obj", "expected"),
    [
        pytest.param(
            ("", "Node"), {"status": {"capacity": {"nvidia.com/half": "500m"}, "allocatable": {"nvidia.com/half": "1k"}}},
            ['status.capacity.nvidia.com/half: Invalid value: "500m": must be an integer'], id="half a GPU of a node",
        ),
        pytest.param(
            ("", "Node"), {"spec": {"taints": [{"key": "a"}]}}, ["metadata.taints[0].effect: Required value"], id="taint"
        ),
        pytest.param(
            ("", "ConfigMap"), {"data": {"a b": ""}},
            [KEY_TEXT], id="key",
        ),
        pytest.param(
            ("", "ConfigMap"), {"data": {"a": "x" * 1048577}}, ["[]: Too long: may not be more than 1048576 bytes"], id="size"
        ),
        pytest.param(
            ("", "Secret"), {"data": {"a": base64.b64encode(b"x" * 1048577).decode()}},
            ["data: Too long: may not be more than 1048576 bytes"], id="secret size",
        ),
        pytest.param(("", "Service"), {"spec": {}}, ["spec.ports: Required value"], id="service"),
        pytest.param(
            ("coordination.k8s.io", "Lease"), {"spec": {"leaseDurationSeconds": 0}},
            ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"], id="lease",
        ),
        pytest.param(
            (RBAC, "Role"), {"rules": [{"verbs": ["get"], "apiGroups": [""]}]},
            ["rules[0].resources: Required value: resource rules must supply at least one resource"], id="role",
        ),
        pytest.param(
            (RBAC, "RoleBinding"), {"roleRef": {"apiGroup": RBAC, "kind": "Rule", "name": "r"}},
            ['roleRef.kind: Unsupported value: "Rule": supported values: "Role", "ClusterRole"'], id="role of a binding",
        ),
        pytest.param(
            (RBAC, "ClusterRoleBinding"),
            {"roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "r"},
             "subjects": [{"kind": "ServiceAccount", "name": "s"}]},
            ["subjects[0].namespace: Required value"], id="account without namespace",
        ),
    ],
)  # fmt: skip
def test_kinds(kind: tuple[str, str], obj: Manifest, expected: list[str]) -> None:
    """One rule of each kind."""
    assert created(kind, obj) == expected


@pytest.mark.parametrize(
    ("kind", "old", "new", "expected"),
    [
        pytest.param(
            ("", "Secret"), {"data": {"a": "Yg=="}, "immutable": True}, {"data": {"a": "Yw=="}, "immutable": True},
            ["data: Forbidden: field is immutable when `immutable` is set"], id="frozen data",
        ),
        pytest.param(
            (RBAC, "RoleBinding"), {"roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "r"}},
            {"roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "s"}},
            [f'roleRef: Invalid value: {{"apiGroup":"{RBAC}","kind":"Role","name":"s"}}: cannot change roleRef'], id="role",
        ),
    ],
)  # fmt: skip
def test_changes(kind: tuple[str, str], old: Manifest, new: Manifest, expected: list[str]) -> None:
    """What may not change."""
    assert updated(kind, old, new) == expected
    assert updated(kind, old, old) == []


def test_node_status() -> None:
    """A kubelet that offers half a device is refused through the status door too."""
    assert updated(("", "Node"), {}, {"status": {"capacity": {"nvidia.com/gpu": "500m"}}}, "status") == [
        'status.capacity.nvidia.com/gpu: Invalid value: "500m": must be an integer'
    ]


@pytest.mark.parametrize(
    ("namespace", "about", "is_good"),
    [
        pytest.param("default", "default", True, id="same"),
        pytest.param("default", "", True, id="objects of the cluster stand in default"),
        pytest.param("gpu-operator", "", False, id="and nowhere else"),
        pytest.param("default", "gpu-operator", False, id="another namespace"),
    ],
)
def test_event_namespaces(namespace: str, about: str, is_good: bool) -> None:
    """An Event stands where its object is."""
    event = {
        "metadata": {"namespace": namespace},
        "involvedObject": {"kind": "X", **({"namespace": about} if about else {})},
    }
    expected = f'involvedObject.namespace: Invalid value: "{about}": does not match event.namespace'

    assert created(("", "Event"), event) == ([] if is_good else [expected])


EVENT: dict[str, Any] = {
    "involvedObject": {"kind": "X"}, "eventTime": "2026-11-01T00:00:00.000000Z", "type": "Normal", "reason": "R",
    "reportingComponent": "x.dev/y", "reportingInstance": "z", "action": "A", "message": "m",
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({}, [], id="good"),
        pytest.param({"action": ""}, ["action: Required value"], id="no action"),
        pytest.param(
            {"message": "m" * 1025}, ['message: Invalid value: "": can have at most 1024 characters'], id="long"
        ),
        pytest.param({"eventTime": None}, ["eventTime: Required value"], id="no time"),
        pytest.param({"type": "Strange"}, ['type: Invalid value: "": has invalid value: Strange'], id="type"),
    ],
)
def test_new_events(change: dict[str, Any], expected: list[str]) -> None:
    """Through `events.k8s.io` more is asked for than through the old door."""
    assert created(("events.k8s.io", "Event"), {**EVENT, **change}) == expected
    assert created(("", "Event"), {**EVENT, **change, "eventTime": None}) == []


def definition(**version: Any) -> Manifest:
    schema = {"type": "object", "properties": {"spec": {"type": "object"}}}
    entry = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    spec = {"group": "x.io", "scope": "Cluster", "names": names, "versions": [entry]}
    return {"metadata": {"name": "widgets.x.io"}, "spec": spec}


def test_definitions() -> None:
    """A CustomResourceDefinition names itself rightly, stores one version, and has types everywhere."""
    assert created(CRD, definition()) == []
    assert created(CRD, {**definition(), "metadata": {"name": "x.y"}}) == [
        'metadata.name: Invalid value: "x.y": must be spec.names.plural+"."+spec.group'
    ]
    assert created(CRD, definition(schema={})) == [
        "spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required"
    ]
    untyped = {"type": "object", "properties": {"spec": {"properties": {"a": {"type": "array"}}}}}
    here = "spec.versions[0].schema.openAPIV3Schema.properties[spec]"
    assert created(CRD, definition(schema={"openAPIV3Schema": untyped})) == [
        f"{here}.type: Required value: must not be empty for specified object fields",
        f"{here}.properties[a].items: Required value: must be specified",
    ]
    assert created(CRD, definition(storage=False))[0].endswith(
        "must have exactly one version marked as storage version"
    )


def test_definitions_keep_their_names() -> None:
    """Objects are stored under group and plural."""
    other = definition()
    other["spec"] = {**other["spec"], "scope": "Namespaced"}
    after = {**other, "metadata": {"name": "widgets.x.io"}}
    before = {**definition(), "metadata": {"name": "widgets.x.io"}}

    causes = checking.check(BUILT_IN[CRD], after, before)
    assert [str(cause) for cause in causes] == ['spec.scope: Invalid value: "Namespaced": field is immutable']
