"""What is refused: the rarer mistakes in pods, selectors, roles and services."""

from __future__ import annotations

from typing import Any

import pytest

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import kinds
from gpushare.sandbox.apiserver.validation import checking

BUILT_IN = {(resource.group, resource.kind): resource for resource in kinds.built_in() if resource.version == "v1"}
RBAC = "rbac.authorization.k8s.io"
RANGE = "must be between 1 and 65535, inclusive"


def created(group: str, kind: str, **obj: Any) -> list[str]:
    return [str(cause) for cause in checking.check(BUILT_IN[group, kind], {"metadata": {"name": "x"}, **obj})]


def container_problems(**container: Any) -> list[str]:
    spec = {
        "restartPolicy": "Always",
        "volumes": [{"name": "v", "emptyDir": {}}],
        "containers": [{"name": "c", "image": "i", **container}],
    }
    return [text.removeprefix("spec.containers[0].") for text in created("", "Pod", spec=spec)]


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        pytest.param({"name": ""}, "name: Required value", id="no name"),
        pytest.param(
            {"imagePullPolicy": "Once"},
            'imagePullPolicy: Unsupported value: "Once": supported values: "Always", "IfNotPresent", "Never"',
            id="pull policy",
        ),
        pytest.param({"ports": [{}]}, "ports[0].containerPort: Required value", id="no port"),
        pytest.param(
            {"ports": [{"containerPort": 70000}]}, f"ports[0].containerPort: Invalid value: 70000: {RANGE}", id="port"
        ),
        pytest.param(
            {"ports": [{"containerPort": 1, "protocol": "X"}]},
            'ports[0].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"',
            id="protocol",
        ),
        pytest.param({"env": [{"value": "x"}]}, "env[0].name: Required value", id="variable without a name"),
        pytest.param(
            {"env": [{"name": "A", "value": "x", "valueFrom": {"fieldRef": {}}}]},
            'env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty',
            id="two values",
        ),
        pytest.param(
            {"volumeMounts": [{"mountPath": "/v"}]}, "volumeMounts[0].name: Required value", id="mount of nothing"
        ),
        pytest.param(
            {"volumeMounts": [{"name": "v"}]}, "volumeMounts[0].mountPath: Required value", id="mount to nowhere"
        ),
        pytest.param(
            {"volumeMounts": [{"name": "v", "mountPath": "/v"}] * 2},
            'volumeMounts[1].mountPath: Invalid value: "/v": must be unique',
            id="one place twice",
        ),
        pytest.param(
            {"resources": {"limits": {"cpu": "-1"}}},
            'resources.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0',
            id="negative",
        ),
        pytest.param(
            {"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}},
            'resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
            id="request over limit",
        ),
        pytest.param({"resources": {"limits": {"a.com/" + "x" * 60: "1"}}}, "", id="a good long resource"),
    ],
)
def test_containers(container: dict[str, Any], expected: str) -> None:
    """One mistake each."""
    assert container_problems(**container) == ([expected] if expected else [])


def test_variable_names() -> None:
    """Whatever a shell could not hold."""
    assert (
        "a valid environment variable name must consist only of printable ASCII"
        in container_problems(env=[{"name": "a=b"}])[0]
    )


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        pytest.param({"key": "a b", "operator": "Exists"}, "key: Invalid value", id="key"),
        pytest.param(
            {"key": "a", "operator": "Exists", "value": "x"},
            "operator: Invalid value: \"x\": value must be empty when `operator` is 'Exists'",
            id="value",
        ),
        pytest.param(
            {"key": "a", "effect": "Never"},
            'effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
            id="effect",
        ),
        pytest.param(
            {"key": "a", "tolerationSeconds": 5},
            "effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set",
            id="seconds",
        ),
    ],
)
def test_tolerations(toleration: dict[str, Any], expected: str) -> None:
    """Tolerations that tolerate nothing."""
    spec = {"containers": [{"name": "c", "image": "i"}], "tolerations": [toleration]}
    assert [text for text in created("", "Pod", spec=spec) if text.startswith(f"spec.tolerations[0].{expected}")]


def test_volumes_and_accounts() -> None:
    """Names twice, paths missing, accounts that cannot be."""
    spec = {
        "containers": [{"name": "c", "image": "i"}],
        "serviceAccountName": "Bad",
        "volumes": [{"name": "v", "hostPath": {}}, {"name": "v", "emptyDir": {}}],
    }
    fields = [text.partition(":")[0] for text in created("", "Pod", spec=spec)]
    assert fields == ["spec.volumes[0].hostPath.path", "spec.volumes[1].name", "spec.serviceAccountName"]


def test_tolerations_of_running_pods_stay() -> None:
    """More may come, seconds may change, none may go."""
    spec = {"containers": [{"name": "c", "image": "i"}], "tolerations": [{"key": "a", "operator": "Exists"}]}
    old = {"metadata": {"name": "x"}, "spec": spec}
    new = {**old, "spec": {**spec, "tolerations": []}}

    causes = checking.check(BUILT_IN["", "Pod"], new, old)
    assert [str(cause) for cause in causes] == [
        "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"
    ]


def deployment(**spec: Any) -> list[str]:
    template = {
        "metadata": {"labels": {"app": "x"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Always"},
    }
    return created("apps", "Deployment", spec={"selector": {"matchLabels": {"app": "x"}}, "template": template, **spec})


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, [], id="good"),
        pytest.param({"replicas": -1}, ["spec.replicas"], id="negative"),
        pytest.param({"selector": None}, ["spec.selector", "spec.template.metadata.labels"], id="no selector"),
        pytest.param({"selector": {}}, ["spec.selector"], id="a selector of everything"),
        pytest.param(
            {"selector": {"matchLabels": {"a b": "c d"}}},
            ["spec.selector.matchLabels", "spec.selector.matchLabels", "spec.template.metadata.labels"],
            id="labels",
        ),
        pytest.param(
            {"selector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["x"]}]}}, [], id="in"
        ),
        pytest.param(
            {"selector": {"matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["x"]}]}}, [], id="not in"
        ),
        pytest.param({"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}, [], id="exists"),
        pytest.param(
            {"selector": {"matchExpressions": [{"key": "app", "operator": "In"}]}},
            ["spec.selector.matchExpressions[0].values", "spec.template.metadata.labels"],
            id="in nothing",
        ),
        pytest.param(
            {"selector": {"matchExpressions": [{"key": "app", "operator": "Exists", "values": ["x"]}]}},
            ["spec.selector.matchExpressions[0].values"],
            id="exists in something",
        ),
        pytest.param(
            {"selector": {"matchExpressions": [{"key": "app", "operator": "Like"}]}},
            ["spec.selector.matchExpressions[0].operator", "spec.template.metadata.labels"],
            id="unknown operator",
        ),
        pytest.param(
            {"selector": {"matchExpressions": [{"key": "a b", "operator": "DoesNotExist"}]}},
            ["spec.selector.matchExpressions[0].key"],
            id="key",
        ),
    ],
)
def test_selectors(spec: dict[str, Any], expected: list[str]) -> None:
    """Selectors that make no sense, or do not select their own pods."""
    assert [text.partition(":")[0] for text in deployment(**spec)] == expected


@pytest.mark.parametrize(
    ("kind", "obj", "expected"),
    [
        pytest.param(
            "Role", {"rules": [{"apiGroups": [""], "resources": ["pods"]}]}, ["rules[0].verbs"], id="no verbs"
        ),
        pytest.param(
            "Role", {"rules": [{"verbs": ["get"], "resources": ["pods"]}]}, ["rules[0].apiGroups"], id="no group"
        ),
        pytest.param(
            "Role", {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/"]}]}, ["rules[0].nonResourceURLs"], id="paths"
        ),
        pytest.param(
            "ClusterRole", {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/"]}]}, [], id="paths of a cluster"
        ),
        pytest.param(
            "ClusterRole",
            {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/"], "resources": ["pods"]}]},
            ["rules[0].nonResourceURLs"],
            id="both",
        ),
        pytest.param("ClusterRoleBinding", {}, ["roleRef.apiGroup", "roleRef.kind", "roleRef.name"], id="no role"),
        pytest.param(
            "ClusterRoleBinding", {"subjects": [{"kind": "Pod", "name": "x"}]}, ["subjects[0].kind"], id="subject"
        ),
        pytest.param(
            "ClusterRoleBinding",
            {"subjects": [{"kind": "User"}]},
            ["subjects[0].name", "subjects[0].apiGroup"],
            id="user",
        ),
        pytest.param(
            "ClusterRoleBinding",
            {"subjects": [{"kind": "ServiceAccount", "name": "A", "namespace": "x"}]},
            ["subjects[0].name"],
            id="account",
        ),
    ],
)
def test_access(kind: str, obj: Manifest, expected: list[str]) -> None:
    """Rules that grant nothing, bindings that bind nobody."""
    if kind.endswith("Binding") and obj:
        obj = {**obj, "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "r"}}
    assert [text.partition(":")[0] for text in created(RBAC, kind, **obj)] == expected


@pytest.mark.parametrize(
    ("group", "kind", "obj", "expected"),
    [
        pytest.param(
            "",
            "Service",
            {"spec": {"ports": [{"port": 0}, {"port": 1}]}},
            ["spec.ports[0].port", "spec.ports[0].name", "spec.ports[1].name"],
            id="ports",
        ),
        pytest.param("", "Service", {"spec": {"type": "ExternalName"}}, [], id="a name elsewhere"),
        pytest.param(
            "",
            "Secret",
            {"type": "kubernetes.io/tls", "data": {}},
            ["data[tls.crt]", "data[tls.key]"],
            id="certificate",
        ),
        pytest.param("", "ConfigMap", {"data": {"a": ""}, "binaryData": {"a": ""}}, ["data[a]"], id="one key twice"),
        pytest.param(
            "",
            "Node",
            {"spec": {"taints": [{"key": "a", "effect": "Never"}]}},
            ["metadata.taints[0].effect"],
            id="effect",
        ),
        pytest.param(
            "",
            "Node",
            {"spec": {"taints": [{"key": "a", "effect": "NoExecute"}] * 2}},
            ["metadata.taints[1]"],
            id="taint twice",
        ),
        pytest.param(
            "coordination.k8s.io",
            "Lease",
            {"spec": {"holderIdentity": "", "leaseTransitions": -1}},
            ["spec.holderIdentity", "spec.leaseTransitions"],
            id="lease",
        ),
        pytest.param(
            "",
            "Event",
            {"eventTime": "t", "reason": "r" * 129, "reportingComponent": "a b", "action": "a"},
            ["reportingController", "reportingInstance", "reason"],
            id="event",
        ),
    ],
)
def test_small_kinds(group: str, kind: str, obj: Manifest, expected: list[str]) -> None:
    """The fields at fault."""
    assert [text.partition(":")[0] for text in created(group, kind, **obj)] == expected


def test_addresses_of_services_stay() -> None:
    """Clients remember them."""
    old, new = (
        {"metadata": {"name": "x"}, "spec": {"type": "ExternalName", "clusterIP": address}} for address in ("1", "2")
    )
    causes = checking.check(BUILT_IN["", "Service"], new, old)

    assert [str(cause) for cause in causes] == ['spec.clusterIPs[0]: Invalid value: ["2"]: may not change once set']
