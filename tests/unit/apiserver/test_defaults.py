"""What a server fills in on its own."""

from __future__ import annotations

from typing import Any

import pytest

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.handling import pod_admission
from gpushare.sandbox.apiserver.objects import defaults, schemas
from gpushare.sandbox.apiserver.objects.jsonvalues import copied


def filled(kind: str, obj: Manifest, group: str = "") -> Manifest:
    """An object with its defaults; filling twice is the same as once."""
    schema = schemas.definition((group, "v1", kind))
    defaults.apply(obj, schema)
    again = copied(obj)
    defaults.apply(again, schema)
    assert again == obj
    return obj


def container(**more: Any) -> dict[str, Any]:
    return {"name": "c", "image": "i:1", **more}


def test_pod_to_the_letter() -> None:
    """A pod that asks for one GPU, as a real server answers it."""
    pod = filled(
        "Pod", {"metadata": {}, "spec": {"containers": [container(resources={"limits": {"nvidia.com/gpu": "1"}})]}}
    )
    pod_admission.admit(pod, suffix="abcde")

    assert pod["spec"].pop("volumes") == [
        {
            "name": "kube-api-access-abcde",
            "projected": {
                "defaultMode": 420,
                "sources": [
                    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                    {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
                    {
                        "downwardAPI": {
                            "items": [
                                {
                                    "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                                    "path": "namespace",
                                }
                            ]
                        }
                    },
                ],
            },
        }
    ]
    assert pod == {
        "metadata": {},
        "spec": {
            "containers": [
                {
                    "name": "c",
                    "image": "i:1",
                    "imagePullPolicy": "IfNotPresent",
                    "resources": {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                    "volumeMounts": [
                        {
                            "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
                            "name": "kube-api-access-abcde",
                            "readOnly": True,
                        }
                    ],
                }
            ],
            "dnsPolicy": "ClusterFirst",
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
            "priority": 0,
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "serviceAccount": "default",
            "serviceAccountName": "default",
            "terminationGracePeriodSeconds": 30,
            "tolerations": [
                {"effect": "NoExecute", "key": key, "operator": "Exists", "tolerationSeconds": 300}
                for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
            ],
        },
        "status": {"phase": "Pending", "qosClass": "BestEffort"},
    }


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        pytest.param("nginx", "Always", id="no tag"),
        pytest.param("nginx:latest", "Always", id="latest"),
        pytest.param("nginx:1.2", "IfNotPresent", id="tag"),
        pytest.param("registry:5000/nginx", "Always", id="a port is no tag"),
        pytest.param("registry:5000/nginx:1", "IfNotPresent", id="port and tag"),
        pytest.param("nginx@sha256:00", "IfNotPresent", id="digest"),
    ],
)
def test_pull_policy(image: str, policy: str) -> None:
    """What may change under the same name is always asked for again."""
    pod = filled("Pod", {"metadata": {}, "spec": {"containers": [{"name": "c", "image": image}]}})
    assert pod["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_daemon_set_to_the_letter() -> None:
    """A DaemonSet, as a real server answers it; its template keeps requests apart from limits."""
    template = {
        "metadata": {"labels": {"app": "dp"}},
        "spec": {"containers": [container(resources={"limits": {"nvidia.com/gpu": "1"}})]},
    }
    obj = filled("DaemonSet", {"metadata": {}, "spec": {"selector": {}, "template": template}}, "apps")

    assert obj["spec"]["updateStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
    }
    assert obj["spec"]["revisionHistoryLimit"] == 10
    assert obj["status"] == {
        "currentNumberScheduled": 0,
        "desiredNumberScheduled": 0,
        "numberMisscheduled": 0,
        "numberReady": 0,
    }
    assert obj["spec"]["template"]["spec"]["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": "1"}}
    assert "enableServiceLinks" not in obj["spec"]["template"]["spec"]


@pytest.mark.parametrize(
    ("kind", "group", "obj", "path", "expected"),
    [
        pytest.param(
            "Deployment", "apps", {"metadata": {}, "spec": {}}, ("spec", "strategy"),
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}, id="rolling",
        ),
        pytest.param(
            "Deployment", "apps", {"metadata": {}, "spec": {"strategy": {"type": "Recreate"}}}, ("spec", "strategy"),
            {"type": "Recreate"}, id="recreate",
        ),
        pytest.param("Deployment", "apps", {"metadata": {}, "spec": {"replicas": 0}}, ("spec", "replicas"), 0, id="none"),
        pytest.param(
            "Service", "", {"metadata": {}, "spec": {"ports": [{"port": 80}]}}, ("spec", "ports"),
            [{"port": 80, "protocol": "TCP", "targetPort": 80}], id="service port",
        ),
        pytest.param(
            "Node", "", {"metadata": {}, "spec": {"podCIDR": "10.0.0.0/24"}}, ("spec", "podCIDRs"), ["10.0.0.0/24"],
            id="node addresses",
        ),
        pytest.param("Node", "", {"metadata": {}}, ("status", "nodeInfo", "osImage"), "", id="node that says nothing"),
        pytest.param(
            "Node", "", {"metadata": {}}, ("status", "daemonEndpoints"), {"kubeletEndpoint": {"Port": 0}}, id="node ports"
        ),
        pytest.param(
            "Node", "", {"metadata": {}, "status": {"capacity": {"cpu": "1"}}}, ("status", "allocatable"), {"cpu": "1"},
            id="all can be given out",
        ),
        pytest.param("Secret", "", {"metadata": {}}, ("type",), "Opaque", id="secret"),
        pytest.param(
            "RoleBinding", "rbac.authorization.k8s.io",
            {"metadata": {}, "roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "u"}]},
            ("subjects",), [{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}], id="subject",
        ),
        pytest.param(
            "Job", "batch", {"metadata": {"name": "j", "uid": "u"}, "spec": {}}, ("spec", "selector"),
            {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}, id="job",
        ),
        pytest.param("Job", "batch", {"metadata": {}, "spec": {"parallelism": 3}}, ("spec", "completions"), None, id="queue"),
    ],
)  # fmt: skip
def test_other_kinds(kind: str, group: str, obj: Manifest, path: tuple[str, ...], expected: Any) -> None:
    """One default of each sort."""
    value: Any = filled(kind, obj, group)
    for step in path:
        value = value.get(step)

    assert value == expected


def test_host_network_and_volumes() -> None:
    """Ports of the host, empty volumes, file modes, kinds of host paths."""
    spec = {
        "hostNetwork": True,
        "containers": [container(ports=[{"containerPort": 80}])],
        "volumes": [
            {"name": "a"},
            {"name": "b", "hostPath": {"path": "/"}},
            {"name": "c", "secret": {"secretName": "s"}},
        ],
    }
    pod = filled("Pod", {"metadata": {}, "spec": spec})

    assert pod["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
    assert pod["spec"]["volumes"] == [
        {"name": "a", "emptyDir": {}},
        {"name": "b", "hostPath": {"path": "/", "type": ""}},
        {"name": "c", "secret": {"secretName": "s", "defaultMode": 420}},
    ]


def test_probes() -> None:
    """A probe is complete however little was said."""
    pod = filled("Pod", {"metadata": {}, "spec": {"containers": [container(livenessProbe={"httpGet": {"port": 1}})]}})

    assert pod["spec"]["containers"][0]["livenessProbe"] == {
        "httpGet": {"port": 1, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }


def test_admission_respects_what_is_there() -> None:
    """No token where none is wanted, no second toleration, the named account."""
    spec = {
        "containers": [container()],
        "automountServiceAccountToken": False,
        "serviceAccountName": "agent",
        "tolerations": [{"operator": "Exists"}],
    }
    pod: Manifest = {"metadata": {}, "spec": spec}
    pod_admission.admit(pod, suffix="abcde", priority=7)

    assert "volumes" not in pod["spec"]
    assert pod["spec"]["tolerations"] == [{"operator": "Exists"}]
    assert (pod["spec"]["serviceAccount"], pod["spec"]["priority"]) == ("agent", 7)


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param({}, "BestEffort", id="nothing"),
        pytest.param({"limits": {"nvidia.com/gpu": "1"}}, "BestEffort", id="only a GPU"),
        pytest.param({"requests": {"cpu": "1"}}, "Burstable", id="a request"),
        pytest.param(
            {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1000m", "memory": "1024Mi"}},
            "Guaranteed",
            id="equal amounts",
        ),
    ],
)
def test_qos_class(resources: dict[str, Any], expected: str) -> None:
    """How the kubelet treats a pod follows from processor and memory."""
    assert expected == pod_admission.qos_class({"containers": [container(resources=resources)]})
