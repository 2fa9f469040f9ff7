"""Environment and arguments of containers."""

from __future__ import annotations

from typing import Any

import pytest

from gpushare.sandbox.node import environment
from gpushare.sandbox.node.environment import ConfigMissing, Surroundings
from gpushare.sandbox.node.specs import Endpoint

AROUND = Surroundings(
    node="gpu01",
    host_ip="127.0.0.1",
    pod_ip="10.244.0.7",
    api=Endpoint(host="127.0.0.1", port=6443),
    allocatable={"cpu": "8", "memory": "1Gi"},
    config_maps={"there": {"data": {"key": "from map", "other": "2"}}, "absent": None},
    secrets={"hidden": {"data": {"word": "sesame"}}},
)
POD: dict[str, Any] = {
    "metadata": {
        "name": "p", "namespace": "ns", "uid": "u1", "labels": {"b": "2", "a": "1"}, "annotations": {"x.y/z": "note"},
    },
    "spec": {"serviceAccountName": "robot"},
}  # fmt: skip


def environ_of(*env: dict[str, Any], given: dict[str, str] | None = None, **container: Any) -> dict[str, str]:
    """The variables of a container with this `env`, without those that every container has."""
    built = environment.build_environ(POD, {"name": "c", "env": list(env), **container}, AROUND, given)
    return {name: value for name, value in built.items() if not name.startswith("KUBERNETES_")}


def field(path: str) -> dict[str, Any]:
    return {"name": "V", "valueFrom": {"fieldRef": {"fieldPath": path}}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("--node=$(NODE)", "--node=gpu01", id="known"),
        pytest.param("$(OTHER)", "$(OTHER)", id="unknown stays"),
        pytest.param("$$(NODE)", "$(NODE)", id="escaped"),
        pytest.param("$NODE costs $5", "$NODE costs $5", id="no shell"),
        pytest.param("$(NODE", "$(NODE", id="unclosed"),
        pytest.param("$(NODE)$(NODE)", "gpu01gpu01", id="twice"),
    ],
)
def test_expand(text: str, expected: str) -> None:
    """`$(NAME)` as a kubelet understands it."""
    assert environment.expand(text, {"NODE": "gpu01"}) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("metadata.name", "p"),
        ("metadata.namespace", "ns"),
        ("metadata.uid", "u1"),
        ("metadata.labels['a']", "1"),
        ("metadata.labels['missing']", ""),
        ("metadata.annotations['x.y/z']", "note"),
        ("metadata.labels", 'a="1"\nb="2"'),
        ("spec.nodeName", "gpu01"),
        ("spec.serviceAccountName", "robot"),
        ("status.hostIP", "127.0.0.1"),
        ("status.podIP", "10.244.0.7"),
    ],
)
def test_downward_api(path: str, expected: str) -> None:
    """Every field that a container may ask for."""
    assert environ_of(field(path)) == {"V": expected}


@pytest.mark.parametrize(
    ("reference", "resources", "expected"),
    [
        pytest.param({"resource": "limits.cpu"}, {"limits": {"cpu": "1500m"}}, "2", id="rounded up"),
        pytest.param({"resource": "limits.cpu", "divisor": "1m"}, {"limits": {"cpu": "1500m"}}, "1500", id="divided"),
        pytest.param({"resource": "limits.memory", "divisor": "1Mi"}, {}, "1024", id="no limit: the node"),
        pytest.param({"resource": "requests.cpu", "divisor": "0"}, {}, "0", id="no request"),
    ],
)
def test_resource_fields(reference: dict[str, str], resources: dict[str, Any], expected: str) -> None:
    """Limits and requests in the unit that is asked for."""
    variable = {"name": "V", "valueFrom": {"resourceFieldRef": reference}}
    assert environ_of(variable, resources=resources) == {"V": expected}


def test_order() -> None:
    """Later variables see earlier ones; the specification beats what the plugin gave."""
    built = environ_of(
        {"name": "A", "value": "1"},
        {"name": "B", "value": "$(A)$(C)"},
        {"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"},
        given={"C": "3", "NVIDIA_VISIBLE_DEVICES": "GPU-1"},
    )
    assert built == {"A": "1", "B": "13", "C": "3", "NVIDIA_VISIBLE_DEVICES": "none"}


def test_whole_maps() -> None:
    """`envFrom` brings every key, with a prefix, and single variables beat it."""
    built = environ_of(
        {"name": "P_other", "value": "mine"},
        envFrom=[{"prefix": "P_", "configMapRef": {"name": "there"}}, {"secretRef": {"name": "hidden"}}],
    )
    assert built == {"P_key": "from map", "P_other": "mine", "word": "sesame"}


def reference(kind: str, name: str, key: str, *, optional: bool = False) -> dict[str, Any]:
    return {"name": "V", "valueFrom": {kind: {"name": name, "key": key, "optional": optional}}}


def test_single_keys() -> None:
    """Keys of ConfigMaps and Secrets."""
    assert environ_of(reference("configMapKeyRef", "there", "key")) == {"V": "from map"}
    assert environ_of(reference("secretKeyRef", "hidden", "word")) == {"V": "sesame"}
    assert environ_of(reference("configMapKeyRef", "absent", "key", optional=True)) == {}


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        (reference("configMapKeyRef", "absent", "key"), 'configmap "absent" not found'),
        (reference("configMapKeyRef", "there", "nokey"), "couldn't find key nokey in ConfigMap ns/there"),
        (reference("secretKeyRef", "gone", "key"), 'secret "gone" not found'),
        (field("status.phase"), "unsupported fieldPath: status.phase"),
    ],
)
def test_missing(variable: dict[str, Any], message: str) -> None:
    """The container waits, with a kubelet's words."""
    with pytest.raises(ConfigMissing) as missing:
        environ_of(variable)
    assert str(missing.value) == message


def test_every_container_finds_the_api_server() -> None:
    """The two variables that every client reads."""
    built = environment.build_environ(POD, {"name": "c"}, AROUND)
    assert (built["KUBERNETES_SERVICE_HOST"], built["KUBERNETES_SERVICE_PORT"]) == ("127.0.0.1", "6443")
    assert built["KUBERNETES_PORT_6443_TCP_ADDR"] == "127.0.0.1"


def test_referred_objects() -> None:
    """What has to be read before a container can start."""
    container = {
        "env": [
            reference("configMapKeyRef", "one", "k"),
            reference("secretKeyRef", "two", "k"),
            field("metadata.name"),
        ],
        "envFrom": [{"configMapRef": {"name": "three"}}],
    }
    assert environment.config_maps_of(container) == {"one", "three"}
    assert environment.secrets_of(container) == {"two"}
