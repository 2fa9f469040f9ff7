"""What the chart brings for parts of GPUs: the scheduler of the sandbox, and both ways to be asked by a kube-scheduler."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpushare import __version__, names
from gpushare.controller import options as controller_options
from gpushare.render import templates
from gpushare.scheduler import options, settings
from support import helm

VALUES = Path(__file__).parent / "values"
IMAGE = f"{names.IMAGE}:{__version__}"
ON = ("--set", "fractions.enabled=true")


def named(found: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    return next(item for item in found if (item["kind"], item["metadata"]["name"]) == (kind, name))


def args_of(found: list[dict[str, Any]], name: str = names.SCHEDULER) -> list[str]:
    """Of the first container of a Deployment."""
    deployment = named(found, "Deployment", name)
    return [str(arg) for arg in deployment["spec"]["template"]["spec"]["containers"][0]["args"]]


def told(found: list[dict[str, Any]]) -> dict[str, Any]:
    """What kube-scheduler reads."""
    return dict(yaml.safe_load(named(found, "ConfigMap", names.SCHEDULER)["data"]["kube-scheduler.yaml"]))


def test_nothing_unless_asked_for() -> None:
    """Who shares GPUs by configuration alone gets no scheduler."""
    found = helm.render()

    assert not [item for item in found if "scheduler" in item["metadata"]["name"]]


def test_scheduler_is_the_same() -> None:
    """Rights, webhook, Service and pod are those of `templates/scheduler`; only labels come besides."""
    url = f"https://{names.SCHEDULER}.{helm.NAMESPACE}.svc:443"
    wanted = templates.render("scheduler", {"namespace": helm.NAMESPACE, "image": IMAGE, "url": url})
    found = helm.render(*ON)

    for item in wanted:
        other = named(found, item["kind"], item["metadata"]["name"])
        if item["kind"] != "ConfigMap":
            assert without_labels(other) == without_labels(item)
    [text] = [item["data"]["kube-scheduler.yaml"] for item in wanted if item["kind"] == "ConfigMap"]
    own_lease = {"leaderElect": True, "resourceNamespace": helm.NAMESPACE, "resourceName": "gpushare-kube-scheduler"}
    assert told(found) == {**yaml.safe_load(text), "leaderElection": own_lease}


def without_labels(item: dict[str, Any]) -> dict[str, Any]:
    return item | {"metadata": {key: value for key, value in item["metadata"].items() if key != "labels"}}


def test_arguments_are_understood() -> None:
    """By the programs that get them."""
    found = helm.render("--values", VALUES / "fractions.yaml")
    args = args_of(found)

    parsed = options.parse(args[1:], {})
    text = named(found, "ConfigMap", f"{names.SCHEDULER}-settings")["data"]["settings.yaml"]
    read = settings.read_settings(text)

    assert (parsed.http_timeout, parsed.scheduler_name) == (20.0, names.SCHEDULER)
    assert str(parsed.settings) == "/etc/gpushare/settings.yaml"
    assert (read.requests.memory, read.requests.claim_plain_gpu) == ("example.com/gpu-memory", True)
    controller = args_of(found, names.CONTROLLER)
    assert {"--hami-node-label=true", "--fractions-isolation=hami-core"} <= set(controller)
    assert controller_options.parse(controller[1:], {}).hami_keys == {"slots": 20, "memoryScaling": 1.5}


def test_every_setting_has_a_place() -> None:
    """The schema of the values knows each key that the scheduler knows, but for the one that has a value of its own."""
    schema = yaml.safe_load((helm.CHART / "values.schema.json").read_text())
    known = schema["properties"]["fractions"]["properties"]["settings"]["properties"]

    assert {*known, "claimPlainGPU"} == set(settings.KEYS)


def test_renamed_resources() -> None:
    """They are asked for by the webhook's condition, and managed by the extender alone: no node shows them."""
    found = helm.render("--values", VALUES / "fractions.yaml")

    [webhook] = named(found, "MutatingWebhookConfiguration", names.SCHEDULER)["webhooks"]
    [condition] = webhook["matchConditions"]
    managed = {
        item["name"]: item.get("ignoredByScheduler", False) for item in told(found)["extenders"][0]["managedResources"]
    }
    for name in ("example.com/gpu-memory", "example.com/gpu-units", "example.com/gpu"):
        assert f"'{name}'" in condition["expression"]
        assert managed[name]
    assert f"'{names.RESOURCE_GPUMEM}'" not in condition["expression"]
    assert (webhook["failurePolicy"], told(found)["extenders"][0]["urlPrefix"]) == ("Fail", "https://10.96.0.42:443")


def test_by_the_default_scheduler() -> None:
    """Pods keep their scheduler, and no other one runs; the ConfigMap says how to tell it of the extender, for fractions only."""
    found = helm.render("--values", VALUES / "fractions-by-the-default-scheduler.yaml")

    assert "--scheduler-name=" in args_of(found)
    assert not [item for item in found if item["metadata"]["name"] == "gpushare-kube-scheduler"]
    [extender] = told(found)["extenders"]
    assert names.RESOURCE_GPU not in {item["name"] for item in extender["managedResources"]}, (
        "whole GPUs would wait for it"
    )


def test_kube_scheduler_is_of_the_cluster() -> None:
    """Unless a version is named."""
    found = helm.render(*ON, "--kube-version", "v1.34.5")

    deployment = named(found, "Deployment", "gpushare-kube-scheduler")
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "kube-scheduler:v1.34.5"


@pytest.mark.parametrize("tolerations", ["null", "[]", '[{"key": "any", "operator": "Exists"}]'])
def test_pods_run_where_all_nodes_give_out_fractions(tolerations: str) -> None:
    """The taint of such nodes keeps none of the chart's pods away, whatever else they are told to tolerate."""
    found = helm.render(*ON, "--set-json", f"tolerations={tolerations}")

    pods = [item["spec"]["template"]["spec"] for item in found if item["kind"] in {"Deployment", "Job"}]
    wanted = {"key": names.TAINT_FRACTIONS, "operator": "Exists", "effect": "NoSchedule"}
    assert len(pods) > 3
    assert [pod for pod in pods if wanted not in pod["tolerations"]] == []


def test_changed_settings_restart_the_scheduler() -> None:
    """It reads them once; nothing else of a release restarts it."""
    before, after = (helm.render(*ON, "--set", f"fractions.settings.defaultMemory={mib}") for mib in (1, 2))

    annotations = [
        named(found, "Deployment", names.SCHEDULER)["spec"]["template"]["metadata"]["annotations"]
        for found in (before, after)
    ]
    text = b"defaultMemory: 1"
    assert annotations[0] == {"gpushare.dev/settings": hashlib.sha256(text).hexdigest()[:16]}
    assert annotations[0] != annotations[1]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        pytest.param({"fractions": {"isolation": "mig"}}, "/fractions/isolation", id="a tier of configurations alone"),
        pytest.param({"fractions": {"httpTimeout": "30s"}}, "/fractions/httpTimeout", id="text for seconds"),
        pytest.param({"fractions": {"settings": {"defaultMem": 1}}}, "defaultMem", id="a setting that nobody knows"),
        pytest.param({"fractions": {"settings": {"aliyunCoreName": "cores"}}}, "aliyunCoreName", id="no resource"),
        pytest.param({"fractions": {"kubeScheduler": {"image": {"repository": ""}}}}, "repository", id="no image"),
    ],
)
def test_values_are_refused(values: dict[str, Any], said: str, tmp_path: Path) -> None:
    """Before anything reaches a cluster."""
    assert said in helm.refusal_of(values, tmp_path).replace(".", "/")


def test_decisions_are_protected() -> None:
    """By name and for everybody but the scheduler; the text names what to leave out."""
    found = helm.render(*ON)

    policy = named(found, "ValidatingAdmissionPolicy", names.SCHEDULER)["spec"]
    assert f"system:serviceaccount:{helm.NAMESPACE}:{names.SCHEDULER}" in policy["matchConditions"][0]["expression"]
    assert all(names.ANNOTATION_DECISION in variable["expression"] for variable in policy["variables"])
    assert policy["validations"][0]["message"].startswith(f"the annotation {names.ANNOTATION_DECISION} is written by")
    assert {"pods", "pods/status", "pods/binding"} <= set(policy["matchConstraints"]["resourceRules"][0]["resources"])
