"""What the agent's templates are filled with, and what of a policy is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpushare import names
from gpushare.api.clusterpolicy import parse_policy
from gpushare.domain import manifests
from gpushare.plan import components
from gpushare.plan.build import build_plan
from gpushare.plan.components import DEVICE_PLUGIN, MONITORING, RUNTIME_CLASSES, STATES, Built, keys_of
from gpushare.plan.environment import RESERVED, build_environment
from gpushare.render.templates import render
from support.snapshots import (
    IMAGE,
    LATER,
    NOW,
    SETTINGS,
    by_mps,
    config_map,
    node,
    policy,
    settle,
    sharing_policy,
    snapshot,
)

BASE = {
    "PASS_DEVICE_SPECS": "true", "FAIL_ON_INIT_ERROR": "true", "DEVICE_LIST_STRATEGY": "envvar", "DEVICE_ID_STRATEGY": "uuid",
    "NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "all", "MPS_ROOT": "/run/nvidia/mps",
    "NVIDIA_MIG_MONITOR_DEVICES": "all", "NVIDIA_DRIVER_ROOT": "/run/nvidia/driver", "METRICS_PORT": "9409",
}  # fmt: skip
NO_CDI = {"cdi": {"enabled": False}}
BY_CDI = BASE | {
    "CDI_ENABLED": "true", "DEVICE_LIST_STRATEGY": "cdi-annotations,cdi-cri", "CDI_ANNOTATION_PREFIX": "cdi.k8s.io/",
}  # fmt: skip
HOOK = {"NVIDIA_CDI_HOOK_PATH": "/usr/local/nvidia/toolkit/nvidia-cdi-hook"}


def build(runtime_classes: frozenset[str] = frozenset(), image: str = IMAGE, **spec: Any) -> Built:
    active = policy(**spec)
    parsed = parse_policy({"spec": active.spec})
    assert parsed.policy is not None, parsed.problems
    found = replace(snapshot(runtime_classes=runtime_classes), settings=replace(SETTINGS, image=image))
    return components.build_device_plugin(found, active, parsed.policy)


def values(**spec: Any) -> dict[str, Any]:
    built = build(**spec)
    assert built.component is not None, built.problems
    return dict(built.component.values)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(NO_CDI, BASE, id="plain"),
        pytest.param({}, BY_CDI | HOOK, id="CDI by default"),
        pytest.param({"toolkit": {"enabled": False}}, BY_CDI, id="CDI with a toolkit of the host"),
        pytest.param(
            {"cdi": {"enabled": True}, "toolkit": {"installDir": "/opt/nv/"}},
            BY_CDI | {"NVIDIA_CDI_HOOK_PATH": "/opt/nv/toolkit/nvidia-cdi-hook"}, id="toolkit elsewhere",
        ),
        pytest.param(
            {**NO_CDI, "hostPaths": {"driverInstallDir": "/opt/driver"}}, BASE | {"NVIDIA_DRIVER_ROOT": "/opt/driver"},
            id="driver elsewhere",
        ),
        pytest.param(
            {**NO_CDI, "gds": {"enabled": True}, "gdrcopy": {"enabled": True}},
            BASE | {"GDS_ENABLED": "true", "MOFED_ENABLED": "true", "GDRCOPY_ENABLED": "true"}, id="GDS and GDRCopy",
        ),
        pytest.param(
            {**NO_CDI, "devicePlugin": {"mps": {"root": "/var/mps"}}}, BASE | {"MPS_ROOT": "/var/mps"}, id="MPS root",
        ),
        pytest.param(
            {"devicePlugin": {"env": [{"name": "DEVICE_LIST_STRATEGY", "value": "envvar"}, {"name": "X"}]}},
            BY_CDI | HOOK | {"DEVICE_LIST_STRATEGY": "envvar", "X": ""}, id="the user wins over everything",
        ),
        pytest.param({**NO_CDI, "mig": {"strategy": "mixed"}}, BASE, id="the MIG strategy is assigned, not rendered"),
        pytest.param(
            {**NO_CDI, "devicePlugin": {"env": [{"name": name, "value": "x"} for name in RESERVED]}},
            BASE, id="a pod knows its node, its address and its cluster",
        ),
    ],
)  # fmt: skip
def test_environment(spec: dict[str, Any], expected: dict[str, str]) -> None:
    """Variables and their values."""
    parsed = parse_policy({"spec": {"devicePlugin": {}, **spec}}).policy
    assert parsed is not None

    assert expected == build_environment(parsed)


def test_environment_keeps_places() -> None:
    """Overridden in place, appended else: as in NVIDIA's operator, so that templates of both compare."""
    env = [{"name": "Z", "value": "1"}, {"name": "DEVICE_ID_STRATEGY", "value": "index"}]
    parsed = parse_policy({"spec": {"devicePlugin": {"env": env}, "gds": {"enabled": True}, **NO_CDI}}).policy
    assert parsed is not None

    assert list(build_environment(parsed)) == [
        *list(BASE)[:-3], "GDS_ENABLED", "MOFED_ENABLED", *list(BASE)[-3:], "Z",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "key", "expected"),
    [
        pytest.param({}, "tolerations", [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
                     id="tolerates the GPU taint"),
        pytest.param({"daemonsets": {"tolerations": [{"operator": "Exists"}]}}, "tolerations", [{"operator": "Exists"}],
                     id="tolerations replace"),
        pytest.param({}, "priority_class", "system-node-critical", id="priority"),
        pytest.param({"daemonsets": {"priorityClassName": "high"}}, "priority_class", "high", id="another priority"),
        pytest.param({"daemonsets": {"updateStrategy": "OnDelete"}}, "update_strategy", {"type": "OnDelete"}, id="OnDelete"),
        pytest.param({"daemonsets": {"rollingUpdate": {"maxUnavailable": "3"}}}, "update_strategy",
                     {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 3}}, id="a number at a time"),
        pytest.param({"daemonsets": {"rollingUpdate": {"maxUnavailable": "25%"}}}, "update_strategy",
                     {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%"}}, id="a part at a time"),
        pytest.param({}, "update_strategy", {"type": "RollingUpdate"}, id="the API's default"),
        pytest.param({"devicePlugin": {"imagePullPolicy": "Sometimes"}}, "pull_policy", "IfNotPresent", id="unknown pull policy"),
        pytest.param({"devicePlugin": {"imagePullPolicy": "Always"}}, "pull_policy", "Always", id="pull policy"),
        pytest.param({"devicePlugin": {"imagePullSecrets": ["a", "b", "a"]}}, "pull_secrets", ["a", "b"], id="pull secrets"),
        pytest.param({"devicePlugin": {"resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}}, "resources",
                     {"limits": {"cpu": "1", "memory": "1Gi"}}, id="resources as the API server writes them"),
        pytest.param({"daemonsets": {"labels": {"app": "x", "helm.sh/chart": "v1", "team": "ml",
                                                "app.kubernetes.io/managed-by": "gpu-operator"}}},
                     "pod_labels", {"team": "ml"}, id="volatile labels restart no pod"),
        pytest.param({"daemonsets": {"labels": {"app": "x", "helm.sh/chart": "v1", "team": "ml",
                                                "app.kubernetes.io/managed-by": "gpu-operator"}}},
                     "labels", {"team": "ml", "helm.sh/chart": "v1"}, id="selectors and pruning stand on ours"),
        pytest.param({"devicePlugin": {"args": ["--pass-device-specs=true", "--device-id-strategy", "index"]}}, "args",
                     ["--pass-device-specs=true", "--device-id-strategy", "index"], id="flags"),
        pytest.param({"runtime_classes": frozenset({"nvidia"})}, "runtime_class", "nvidia", id="runtime class"),
        pytest.param({"hostPaths": {"rootFS": "/hostfs"}}, "host_root", "/hostfs", id="root of the host"),
        pytest.param({"operator": {"runtimeClass": "other"}, "runtime_classes": frozenset({"nvidia"})}, "runtime_class", "",
                     id="a runtime class that is not there"),
        pytest.param({"cdi": {"nriPluginEnabled": True}, "runtime_classes": frozenset({"nvidia"})}, "runtime_class", "",
                     id="NRI in its place"),
        pytest.param({}, "metrics_port", 9409, id="where metrics are"),
        pytest.param({"devicePlugin": {"env": [{"name": "METRICS_PORT", "value": "9500"}]}}, "metrics_port", 9500,
                     id="the probe follows the variable"),
        pytest.param({"devicePlugin": {"args": ["--metrics-port", "9600"]}}, "metrics_port", 9600, id="and the flag"),
        pytest.param({"devicePlugin": {"env": [{"name": "METRICS_PORT", "value": "0"}]}}, "metrics_port", 0, id="no metrics"),
        pytest.param({}, "image", IMAGE, id="own image"),
        pytest.param({"devicePlugin": {"repository": "mirror.example/a", "image": "gpu-sharing-operator", "version": "2"}},
                     "image", "mirror.example/a/gpu-sharing-operator:2", id="own image from a mirror"),
        pytest.param({"devicePlugin": {"repository": "nvcr.example", "image": "k8s-device-plugin", "version": "v0.20.0"}},
                     "image", IMAGE, id="NVIDIA's plugin is not what we are"),
    ],
)  # fmt: skip
def test_values(spec: dict[str, Any], key: str, expected: Any) -> None:
    """What of a policy becomes what in the templates."""
    assert expected == values(**spec)[key]


@pytest.mark.parametrize(
    ("spec", "path", "text"),
    [
        pytest.param({"devicePlugin": {"image": "x", "version": "1"}}, "spec.devicePlugin", "without repository", id="image"),
        pytest.param({"daemonsets": {"rollingUpdate": {"maxUnavailable": "some"}}},
                     "spec.daemonsets.rollingUpdate.maxUnavailable", '"some" is neither a number', id="no number"),
        pytest.param({"daemonsets": {"rollingUpdate": {"maxUnavailable": "0%"}}},
                     "spec.daemonsets.rollingUpdate.maxUnavailable", "above 0", id="nothing at a time"),
        pytest.param({"devicePlugin": {"args": ["/bin/entrypoint.sh"]}}, "spec.devicePlugin.args[0]", "no flag", id="script"),
        pytest.param({"devicePlugin": {"args": ["--a=1", "nvidia-device-plugin --x"]}}, "spec.devicePlugin.args[1]", "no flag",
                     id="line for a shell"),
        pytest.param({"devicePlugin": {"args": ["--a --b"]}}, "spec.devicePlugin.args[0]", "not a line for a shell",
                     id="two flags in one"),
        pytest.param({"devicePlugin": {"args": ["--bogus"]}}, "spec.devicePlugin.args", "unknown flag '--bogus'", id="flag"),
        pytest.param({"devicePlugin": {"args": ["--device-id-strategy=some"]}}, "spec.devicePlugin.args",
                     "--device-id-strategy: 'some' is none of uuid, index", id="value of a flag"),
        pytest.param({"devicePlugin": {"args": ["--device-id-strategy"]}}, "spec.devicePlugin.args", "a value is missing",
                     id="no value"),
        pytest.param({"devicePlugin": {"args": ["--mig-strategy=single"]}}, "spec.devicePlugin.args",
                     "--mig-strategy: remove it, since mig.strategy of the policy says it", id="one strategy beside the other"),
        pytest.param({"devicePlugin": {"args": ["--node-name", "gpu01"]}}, "spec.devicePlugin.args",
                     "--node-name: remove it, since every pod has its own", id="one node for all"),
        pytest.param({"devicePlugin": {"args": ["--config-file=/x"]}}, "spec.devicePlugin.args", "by devicePlugin.config",
                     id="one file for all"),
        pytest.param({"devicePlugin": {"env": [{"name": "FAIL_ON_INIT_ERROR", "value": "maybe"}]}}, "spec.devicePlugin.env",
                     "FAIL_ON_INIT_ERROR: 'maybe' is neither true nor false", id="value of a variable"),
        pytest.param({"devicePlugin": {"env": [{"name": "METRICS_PORT", "value": "http"}]}}, "spec.devicePlugin.env",
                     "METRICS_PORT: 'http' is no port", id="no port"),
        pytest.param({"image": ""}, "spec.devicePlugin", "DEVICE_PLUGIN_IMAGE", id="no image at all"),
    ],
)  # fmt: skip
def test_refused(spec: dict[str, Any], path: str, text: str) -> None:
    """What cannot be rendered is named with its place."""
    built = build(**spec)

    assert built.component is None
    [problem] = built.problems
    assert path == problem.path
    assert text in problem.message


def test_refused_component_stays_as_it_is() -> None:
    """A partial image reference stops what concerns the DaemonSet; what runs goes on, and configurations still arrive."""
    good, _ = settle(snapshot(node()))
    broken = policy(devicePlugin={"image": "x", "version": "1"}, mig={"strategy": "single"})

    plan = build_plan(replace(good, policies=(replace(good.policies[0], spec=broken.spec),)), LATER)

    assert plan.components == plan.prune == ()
    assert [spec.config.mig_strategy for spec in plan.gpu_nodes] == ["single"]
    error = next(condition for condition in plan.policies[0].conditions if condition.type == "Error")
    assert error.reason == "ReconcileFailed"
    assert error.message.startswith(
        "Failed to reconcile state-device-plugin: spec.devicePlugin: invalid image specification"
    )


def test_what_is_not_taken_is_said() -> None:
    """An image that is not ours, and a variable that only a pod can know, are named where a person looks."""
    spec = {"image": "k8s-device-plugin:v1", "env": [{"name": "NODE_NAME", "value": "x"}]}
    common = {"podSecurityContext": {"runAsNonRoot": True}}
    found, _ = settle(snapshot(policies=(policy(devicePlugin=spec, dcgm={"enabled": False}, daemonsets=common),)))

    message = next(c.message for c in found.policies[0].conditions if c.type == "UnmanagedComponents")
    assert "left to another operator: driver, toolkit, dcgmExporter, migManager" in message
    assert f"k8s-device-plugin:v1 is not used; the agent runs {IMAGE}" in message
    assert "NODE_NAME is not taken" in message
    assert "podSecurityContext.runAsNonRoot is not taken" in message


def test_refused_by_the_api_server() -> None:
    """What the API server said to the last try stands on the policy."""
    found = replace(snapshot(node()), failures={DEVICE_PLUGIN: "DaemonSet x: spec.template: Invalid value"})

    plan = build_plan(found, LATER)

    error = next(condition for condition in plan.policies[0].conditions if condition.type == "Error")
    assert error.message == "Failed to reconcile state-device-plugin: DaemonSet x: spec.template: Invalid value"


def test_keys_are_those_of_the_templates() -> None:
    """The plan knows every object of a component by name."""
    fractions = node("gpu02", **{names.LABEL_ACK_SCHEDULE: "share"})
    cluster = snapshot(node(), fractions, policies=(sharing_policy("any"),), config_maps=(config_map(any=by_mps(4)),))
    plan = build_plan(replace(cluster, service_monitors=True), NOW)

    assert {component.name for component in plan.components} == STATES.keys()
    for component in plan.components:
        rendered = render(component.name, component.values)
        assert {manifests.key_of(manifest) for manifest in rendered} == keys_of(component)


@pytest.mark.parametrize(
    ("spec", "others", "expected"),
    [
        pytest.param({}, (), ["nvidia", "nvidia-legacy", "nvidia-cdi"], id="all three, for CDI"),
        pytest.param(NO_CDI, (), ["nvidia"], id="without CDI"),
        pytest.param({"operator": {"runtimeClass": "gpu"}, **NO_CDI}, (), ["gpu"], id="by another name"),
        pytest.param({"operator": {"runtimeClass": ""}, **NO_CDI}, (), ["nvidia"], id="no name is the usual one"),
        pytest.param({}, ("nvidia", "nvidia-cdi"), ["nvidia-legacy"], id="somebody else's are left alone"),
        pytest.param(NO_CDI, ("nvidia",), [], id="all of them are there"),
        pytest.param({"cdi": {"nriPluginEnabled": True}}, (), [], id="NRI in their place"),
        pytest.param({"devicePlugin": {"enabled": False}}, (), [], id="nothing is wanted"),
    ],
)
def test_runtime_classes(spec: dict[str, Any], others: tuple[str, ...], expected: list[str]) -> None:
    """Pods that name a class must find it, by whomever it is made."""
    plan = build_plan(snapshot(policies=(policy(**spec),), runtime_classes=frozenset(others)), NOW)

    found = [name for c in plan.components if c.name == RUNTIME_CLASSES for name in c.values["runtime_classes"]]
    assert expected == found


@pytest.mark.parametrize(
    ("runtimes", "cdi", "expected"),
    [
        pytest.param(["cri-o"], False, "", id="CRI-O has a hook instead"),
        pytest.param(["cri-o"], True, "nvidia", id="not with CDI"),
        pytest.param(["cri-o", "containerd"], False, "nvidia", id="one containerd decides"),
        pytest.param([""], False, "nvidia", id="not told"),
    ],
)
def test_runtime_class_of_the_agent(runtimes: list[str], cdi: bool, expected: str) -> None:
    """As with NVIDIA's operator, CRI-O without CDI has no class."""
    nodes = (replace(node(f"gpu{n}"), runtime=runtime) for n, runtime in enumerate(runtimes))
    found = snapshot(*nodes, policies=(policy(cdi={"enabled": cdi}),), runtime_classes=frozenset({"nvidia"}))

    assert build_plan(found, NOW).components[0].values["runtime_class"] == expected


@pytest.mark.parametrize(
    ("monitor", "served", "expected"),
    [
        pytest.param({}, True, True, id="where the kind is"),
        pytest.param({}, False, False, id="where it is not"),
        pytest.param({"enabled": True}, True, True, id="said so"),
        pytest.param({"enabled": False}, True, False, id="not wanted"),
    ],
)
def test_service_monitor(monitor: dict[str, Any], served: bool, expected: bool) -> None:
    """Where Prometheus is told by objects what to read, there is one for it."""
    found = snapshot(policies=(policy(operator={"metrics": {"serviceMonitor": monitor}}),), service_monitors=served)

    assert expected is any(component.name == MONITORING for component in build_plan(found, NOW).components)


def test_failures_have_names() -> None:
    """What fails is told under the name that NVIDIA's operator has for it, and of all that fails the policy tells."""
    failures = {RUNTIME_CLASSES: "it may not", MONITORING: "no such kind"}

    plan = build_plan(replace(snapshot(node()), failures=failures), LATER)

    error = next(condition for condition in plan.policies[0].conditions if condition.type == "Error")
    assert "Failed to reconcile pre-requisites: it may not" in error.message
    assert "Failed to reconcile state-operator-metrics: no such kind" in error.message
