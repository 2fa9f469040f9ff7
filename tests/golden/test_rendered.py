"""Policies to the whole stream of manifests that is applied for them. `make golden-update` rewrites `rendered/`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import kubernetes_validate
import pytest
import yaml

from gpushare.domain.manifests import Manifest
from gpushare.plan.build import build_plan
from gpushare.plan.snapshot import Snapshot
from gpushare.render.decorate import decorate
from gpushare.render.ordering import in_order
from gpushare.render.templates import render
from support.snapshots import NOW, by_mps, config_map, node, policy, sharing_policy, snapshot

Golden = Callable[[str, str], None]

NO_CDI = {"cdi": {"enabled": False}}
CASES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "sandbox": {"mig": {}, **NO_CDI},
    "sharing": {"devicePlugin": {"config": {"name": "time-slicing-config-all", "default": "any"}}, **NO_CDI},
    "in-the-field": {
        "operator": {"defaultRuntime": "crio", "runtimeClass": "nvidia", "initContainer": {}, "use_ocp_driver_toolkit": False},
        "devicePlugin": {
            "enabled": True,
            "repository": "nvcr.example/nvidia", "image": "k8s-device-plugin", "version": "v0.20.0",
            "imagePullPolicy": "IfNotPresent",
            "env": [{"name": "PASS_DEVICE_SPECS", "value": "true"}, {"name": "FAIL_ON_INIT_ERROR", "value": "true"},
                    {"name": "DEVICE_LIST_STRATEGY", "value": "envvar"}],
        },
        "daemonsets": {
            "labels": {"helm.sh/chart": "gpu-operator-v26.7.0", "app.kubernetes.io/managed-by": "gpu-operator"},
            "updateStrategy": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "1"},
            "priorityClassName": "system-node-critical",
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        },
        "validator": {"plugin": None}, "psp": {"enabled": False}, "mig": {"strategy": "single"},
    },
    "everything": {
        "devicePlugin": {
            "repository": "registry.example/gpu", "image": "gpu-sharing-operator", "version": "sha256:" + "0" * 64,
            "imagePullPolicy": "Always", "imagePullSecrets": ["a", "b"], "args": ["--shared-devices-allocation-policy=packed"],
            "env": [{"name": "DEVICE_LIST_STRATEGY", "value": "cdi-cri"}, {"name": "EXTRA", "value": 'yes: "no"'}],
            "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
            "hostNetwork": True, "mps": {"root": "/var/mps"},
        },
        "daemonsets": {
            "labels": {"team": "ml"}, "annotations": {"note": "kept"}, "priorityClassName": "high",
            "podSecurityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "rollingUpdate": {"maxUnavailable": "25%"}, "tolerations": [{"operator": "Exists"}],
        },
        "hostPaths": {"driverInstallDir": "/opt/driver", "kubeletRootDir": "/data/kubelet"},
        "gds": {"enabled": True}, "gdrcopy": {"enabled": True}, "toolkit": {"enabled": False},
    },
    "monitored": {
        "operator": {"metrics": {"serviceMonitor": {
            "enabled": True, "interval": "15s", "scrapeTimeout": "10s", "honorLabels": True,
            "additionalLabels": {"release": "prometheus", "app.kubernetes.io/managed-by": "x"},
            "relabelings": [None, {"action": "replace", "sourceLabels": ["__meta_kubernetes_namespace"], "targetLabel": "ns"}],
        }}},
        **NO_CDI,
    },
    "nri": {"cdi": {"enabled": True, "nriPluginEnabled": True}},
    "no-metrics": {"devicePlugin": {"env": [{"name": "METRICS_PORT", "value": "0"}]}, **NO_CDI},
    "on-delete": {"daemonsets": {"updateStrategy": "OnDelete"}, **NO_CDI},
    "disabled": {"devicePlugin": {"enabled": False}},
}  # fmt: skip


def rendered(name: str) -> list[Manifest]:
    classes = frozenset({"nvidia"}) if name == "in-the-field" else frozenset()
    monitored = name == "monitored"
    return rendered_of(snapshot(policies=(policy(**CASES[name]),), runtime_classes=classes, service_monitors=monitored))


def rendered_of(cluster: Snapshot) -> list[Manifest]:
    plan = build_plan(cluster, NOW)
    return in_order(
        manifest
        for component in plan.components
        for manifest in decorate(
            render(component.name, component.values),
            component=component.name,
            owner=component.owner,
            owner_uid=component.owner_uid,
        )
    )


def checked(found: list[Manifest]) -> str:
    for manifest in found:
        if manifest["kind"] == "ServiceMonitor":  # a kind of the Prometheus operator
            continue
        kubernetes_validate.validate(manifest, "1.36", strict=True)
    return yaml.safe_dump_all(found, sort_keys=False, width=120)


@pytest.mark.parametrize("name", CASES)
def test_policy(name: str, golden: Golden) -> None:
    """A policy gives exactly this, and a real API server would take it."""
    golden(f"rendered/{name}.yaml", checked(rendered(name)))


def test_mps(golden: Golden) -> None:
    """A configuration in use that shares by MPS brings the DaemonSet of its daemons."""
    cluster = snapshot(node(), policies=(sharing_policy("any", **NO_CDI),), config_maps=(config_map(any=by_mps(4)),))

    golden("rendered/mps.yaml", checked(rendered_of(cluster)))


def test_controller(golden: Golden) -> None:
    """What an administrator installs."""
    values = {"namespace": "gpu-operator", "image": "registry.example/gpu-sharing-operator:1.0"}

    golden("rendered/controller.yaml", checked(decorate(render("controller", values), component="controller")))


def test_release_restarts_no_pod() -> None:
    """Another chart version in the common labels, or another policy, changes no pod template."""

    def template_of(active: dict[str, Any], uid: str) -> Any:
        plan = build_plan(snapshot(policies=(policy(uid, **active),)), NOW)
        found = decorate(render("device-plugin", plan.components[0].values), component="device-plugin", owner_uid=uid)
        return found[-1]["spec"]["template"]

    first, second = ({"daemonsets": {"labels": {"helm.sh/chart": version}}} for version in ("a-1", "a-2"))
    assert template_of(first, "one") == template_of(second, "two")


def test_controller_holds_what_it_grants() -> None:
    """Kubernetes lets nobody grant what they do not have."""
    values = {"namespace": "gpu-operator", "image": "x"}
    own = _rules(render("controller", values))
    plan = build_plan(snapshot(), NOW)

    assert _rules(render("device-plugin", plan.components[0].values)) <= own


def _rules(found: list[Manifest]) -> set[tuple[str, str, str, str]]:
    return {
        (group, resource, verb, name)
        for manifest in found
        for rule in manifest.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    }
