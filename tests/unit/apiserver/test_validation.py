"""What is refused, and the words for it: metadata, pods and workloads."""

from __future__ import annotations

from typing import Any

import pytest

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import kinds
from gpushare.sandbox.apiserver.objects.jsonvalues import copied
from gpushare.sandbox.apiserver.resources import Resource
from gpushare.sandbox.apiserver.validation import checking

BUILT_IN = {resource.kind: resource for resource in kinds.built_in() if resource.version == "v1" and not resource.view}
WIDGET = Resource(
    group="x.io", version="v1", kind="Widget", plural="widgets", namespaced=True, definition={"spec": {"versions": []}}
)
LABEL_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def created(resource: Resource, obj: Manifest) -> list[str]:
    return [str(cause) for cause in checking.check(resource, obj)]


def updated(kind: str, old: Manifest, new: Manifest, subresource: str = "") -> list[str]:
    return [str(cause) for cause in checking.check(BUILT_IN[kind], new, old, subresource)]


def config_map(**metadata: Any) -> Manifest:
    return {"metadata": {"name": "x", "namespace": "d", "uid": "u", **metadata}}


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        pytest.param(
            {"labels": {"bad/key/x": "1"}},
            f'metadata.labels: Invalid value: "bad/key/x": a valid label key {LABEL_TEXT} with an optional DNS subdomain '
            "prefix and '/' (e.g. 'example.com/MyName')",
            id="label key",
        ),
        pytest.param(
            {"labels": {"a": "has space"}}, f'metadata.labels: Invalid value: "has space": {VALUE_TEXT}', id="value"
        ),
        pytest.param(
            {"labels": {"a": "x" * 64}},
            f'metadata.labels: Invalid value: "{"x" * 64}": must be no more than 63 bytes',
            id="long value",
        ),
        pytest.param(
            {"annotations": {"Bad Key": "1"}},
            f'metadata.annotations: Invalid value: "Bad Key": name part {LABEL_TEXT}',
            id="annotation",
        ),
        pytest.param(
            {"annotations": {"a": "x" * 262144}},
            "metadata.annotations: Too long: may not be more than 262144 bytes",
            id="annotations together",
        ),
        pytest.param({"name": "Bad_Name"}, f'metadata.name: Invalid value: "Bad_Name": {SUBDOMAIN_TEXT}', id="name"),
        pytest.param(
            {"name": "a" * 260},
            f'metadata.name: Invalid value: "{"a" * 260}": must be no more than 253 bytes',
            id="long name",
        ),
        pytest.param(
            {"finalizers": ["noslash"]},
            'metadata.finalizers[0]: Invalid value: "noslash": name is neither a standard finalizer name nor is it fully '
            "qualified",
            id="finalizer",
        ),
        pytest.param(
            {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o"}]},
            'metadata.ownerReferences[0].uid: Invalid value: "": must not be empty',
            id="owner without uid",
        ),
        pytest.param(
            {
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": kind, "name": "o", "uid": "u", "controller": True}
                    for kind in ("A", "B")
                ]
            },
            'metadata.ownerReferences: Invalid value: [{"apiVersion":"v1","kind":"A","name":"o","uid":"u","controller":true},'
            '{"apiVersion":"v1","kind":"B","name":"o","uid":"u","controller":true}]: Only one reference can have Controller '
            'set to true. Found "true" in references for A/o and B/o',
            id="two controllers",
        ),
    ],
)
def test_metadata(metadata: dict[str, Any], expected: str) -> None:
    """Metadata is checked on every write of every kind."""
    assert created(BUILT_IN["ConfigMap"], config_map(**metadata)) == [expected]
    assert expected in updated("ConfigMap", config_map(), config_map(**metadata))


def test_metadata_of_custom_resources() -> None:
    """Their finalizers need no domain."""
    assert created(WIDGET, config_map(finalizers=["noslash"])) == []
    assert len(created(WIDGET, config_map(labels={"a b": ""}))) == 1


def test_metadata_that_does_not_change() -> None:
    """A uid stays; an object that is going gets no new finalizers."""
    assert (
        updated("ConfigMap", config_map(), config_map(uid="x"))
        == ['metadata.uid: Invalid value: "x": field is immutable'] * 2
    )
    going = {"deletionTimestamp": "t", "finalizers": ["a/x"]}
    assert updated("ConfigMap", config_map(**going), config_map(finalizers=["a/x", "a/y"])) == [
        (
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new "
            'finalizers []string{"a/y"}'
        )
    ]


@pytest.mark.parametrize(
    ("kind", "name", "is_good"),
    [
        pytest.param("Namespace", "a.b", False, id="namespaces are labels"),
        pytest.param("Service", "1a", False, id="services start with a letter"),
        pytest.param("ClusterRole", "system:node", True, id="roles may have colons"),
        pytest.param("ClusterRole", "a/b", False, id="but no slashes"),
        pytest.param("Node", "gpu01.example.com", True, id="nodes have domains"),
    ],
)
def test_names(kind: str, name: str, is_good: bool) -> None:
    """Each kind has its own rule for names."""
    causes = [
        text for text in created(BUILT_IN[kind], {"metadata": {"name": name}}) if text.startswith("metadata.name")
    ]
    assert (not causes) is is_good


def pod(**spec: Any) -> Manifest:
    container = {"name": "c", "image": "i"}
    return {"metadata": {"name": "p"}, "spec": {"restartPolicy": "Always", "containers": [container], **spec}}


def limited(limit: str, request: str) -> dict[str, Any]:
    resources = {"limits": {"nvidia.com/gpu": limit}, "requests": {"nvidia.com/gpu": request}}
    return {"containers": [{"name": "c", "image": "i", "resources": resources}]}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": []}, ["spec.containers: Required value"], id="no containers"),
        pytest.param(
            {"containers": [{"name": "c"}, {"name": "c", "image": "i"}]},
            ["spec.containers[0].image: Required value", 'spec.containers[1].name: Duplicate value: "c"'],
            id="no image, same name",
        ),
        pytest.param(
            limited("1", "2"),
            ['spec.containers[0].resources.requests: Invalid value: "2": must be equal to nvidia.com/gpu limit of 1'],
            id="request unlike limit",
        ),
        pytest.param(
            limited("500m", "500m"),
            [
                'spec.containers[0].resources.limits[nvidia.com/gpu]: Invalid value: "500m": must be an integer',
                'spec.containers[0].resources.requests[nvidia.com/gpu]: Invalid value: "500m": must be an integer',
            ],
            id="half a GPU",
        ),
        pytest.param(
            {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"nvidia.com/gpu": "1"}}}]},
            ["spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources"],
            id="no limit",
        ),
        pytest.param(
            {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"gpu": "1"}}}]},
            [
                'spec.containers[0].resources.limits[gpu]: Invalid value: "gpu": must be a standard resource for containers'
            ],
            id="unknown resource",
        ),
        pytest.param(
            {"containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]},
            ['spec.containers[0].volumeMounts[0].name: Not found: "v"'],
            id="no such volume",
        ),
        pytest.param(
            {"restartPolicy": "Maybe"},
            ['spec.restartPolicy: Unsupported value: "Maybe": supported values: "Always", "OnFailure", "Never"'],
            id="restart policy",
        ),
        pytest.param(
            {"tolerations": [{"value": "x"}]},
            [
                (
                    'spec.tolerations[0].operator: Invalid value: "": operator must be Exists when `key` is empty, which '
                    'means "match all values and all keys"'
                )
            ],
            id="toleration",
        ),
        pytest.param(
            {"tolerations": [{"key": "nvidia.com/gpu", "operator": "exists"}]},
            ['spec.tolerations[0].operator: Unsupported value: "exists": supported values: "Equal", "Exists"'],
            id="toleration by an unknown operator",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]},
            ["spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"],
            id="two volumes in one",
        ),
    ],
)
def test_pods(spec: dict[str, Any], expected: list[str]) -> None:
    """A pod that could never run as meant is not stored."""
    assert created(BUILT_IN["Pod"], pod(**spec)) == expected


@pytest.mark.parametrize(
    ("change", "is_allowed"),
    [
        pytest.param({"containers": [{"name": "c", "image": "i:2"}]}, True, id="image"),
        pytest.param({"tolerations": [{"key": "a", "operator": "Exists"}]}, True, id="one more toleration"),
        pytest.param({"activeDeadlineSeconds": 5}, True, id="deadline"),
        pytest.param({"nodeName": "n"}, False, id="node"),
        pytest.param({"containers": [{"name": "c", "image": "i", "command": ["x"]}]}, False, id="command"),
        pytest.param({"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]}, False, id="container"),
    ],
)
def test_pod_updates(change: dict[str, Any], is_allowed: bool) -> None:
    """A pod that runs keeps its spec."""
    causes = updated("Pod", pod(), pod(**change))

    assert (not causes) is is_allowed
    assert all(
        text.startswith(("spec: Forbidden: pod updates", "spec.containers: Forbidden: pod updates")) for text in causes
    )
    assert updated("Pod", pod(), pod(**change), "status") == []


def daemon_set(selector: str = "dp", label: str = "dp") -> Manifest:
    template = {"metadata": {"labels": {"app": label}}, "spec": pod()["spec"]}
    return {"metadata": {"name": "dp"}, "spec": {"selector": {"matchLabels": {"app": selector}}, "template": template}}


def test_daemon_set_selectors() -> None:
    """A selector never changes, and the template's labels meet it."""
    mismatch = "spec.template.metadata.labels: Invalid value: {%s}: `selector` does not match template `labels`"
    assert created(BUILT_IN["DaemonSet"], daemon_set()) == []
    assert updated("DaemonSet", daemon_set(), daemon_set("other")) == [
        'spec.selector: Invalid value: {"matchLabels":{"app":"other"}}: field is immutable',
        mismatch % '"app":"dp"',
    ]
    assert updated("DaemonSet", daemon_set(), daemon_set(label="other")) == [mismatch % '"app":"other"']


@pytest.mark.parametrize("kind", ["DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"])
def test_workload_templates(kind: str) -> None:
    """Templates follow the rules of pods, and run for ever."""
    bad = daemon_set()
    bad["spec"]["template"]["spec"] = {**pod(restartPolicy="Never")["spec"], "containers": []}

    assert created(BUILT_IN[kind], bad) == [
        "spec.template.spec.containers: Required value",
        'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
    ]


def test_jobs() -> None:
    """A Job ends, and what it runs does not change."""
    job = {"metadata": {"name": "j"}, "spec": {"template": {"spec": pod(restartPolicy="Never")["spec"]}}}
    assert created(BUILT_IN["Job"], job) == []
    assert created(BUILT_IN["Job"], {**job, "spec": {"template": {"spec": pod()["spec"]}}}) == [
        'spec.template.spec.restartPolicy: Unsupported value: "Always": supported values: "OnFailure", "Never"'
    ]
    other = copied(job)
    other["spec"]["template"]["spec"]["containers"][0]["image"] = "j"
    assert [text.partition(":")[0] for text in updated("Job", job, other)] == ["spec.template"]
