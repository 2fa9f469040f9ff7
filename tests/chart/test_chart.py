"""What the chart renders: valid objects, the same that `templates/controller` has, and nothing from values that cannot be."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from gpushare import __version__, data, names
from gpushare.controller import options
from gpushare.plan import components
from gpushare.render import templates
from support import helm

VALUES = sorted((Path(__file__).parent / "values").glob("*.yaml"))
PAGES = [*helm.ROOT.glob("docs/*.md"), *helm.ROOT.glob("charts/*/README.md")]
WRITTEN = sorted(
    {
        option
        for page in PAGES
        for option in re.findall(r"--set(?:-json|-string)? (?:'[^']+'|[^\s`)]+)", page.read_text())
        if not re.search(
            r"\.\.\.|nfd\.|nvidiaNodeSelector", option
        )  # to be filled in, of our packages, of HAMi's chart
    }
)
CRDS = data.path_of("crds")
IMAGE = f"{names.IMAGE}:{__version__}"


@pytest.fixture(scope="module")
def defaults() -> list[dict[str, Any]]:
    return helm.render()


def test_lint() -> None:
    """Helm itself has nothing against it."""
    got = helm.run("lint", "--strict", helm.CHART)

    assert got.returncode == 0, got.stdout + got.stderr


@pytest.mark.parametrize("values", [pytest.param(path, id=path.stem) for path in VALUES])
def test_objects_are_valid(values: Path) -> None:
    """An API server would take every object of every way of installing."""
    got = helm.run("lint", "--strict", helm.CHART, "--values", values)
    assert got.returncode == 0, got.stdout
    for manifest in helm.render("--values", values):
        assert manifest["metadata"].get("namespace", helm.NAMESPACE) == helm.NAMESPACE
        if manifest["kind"] == "ClusterPolicy":
            jsonschema.validate(manifest, _schema_of("nvidia.com_clusterpolicies.yaml"))
        elif manifest["kind"] not in {"ServiceMonitor", "PrometheusRule"}:  # kinds of the Prometheus operator
            kubernetes_validate.validate(manifest, "1.36", strict=True)


@pytest.mark.parametrize("option", WRITTEN)
def test_what_the_pages_set_is_taken(option: str) -> None:
    """People copy it: `--set` makes a text of 1.5, where the schema wants a number."""
    assert helm.render(*shlex.split(option))


@pytest.mark.parametrize("values", [pytest.param(path, id=path.stem) for path in VALUES])
def test_arguments_are_understood(values: Path) -> None:
    """The controller takes every flag that the chart gives to it."""
    [deployment] = [
        each
        for each in helm.render("--values", values)
        if (each["kind"], each["metadata"]["name"]) == ("Deployment", names.CONTROLLER)
    ]
    [container] = deployment["spec"]["template"]["spec"]["containers"]

    given = options.parse(container["args"][1:], {})
    wanted = yaml.safe_load(values.read_text()) or {}
    rollout = wanted.get("rollout", {})
    assert (given.canary.text if given.canary else "", given.stop_on_refusal, given.discovery_grace_seconds) == (
        rollout.get("canary", ""), rollout.get("stopOnRefusal", False), wanted.get("discoveryGraceSeconds", 600),
    )  # fmt: skip


def _schema_of(file: str) -> Any:
    return yaml.safe_load((CRDS / file).read_text())["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


@pytest.mark.parametrize("file", sorted(path.name for path in CRDS.glob("*")))
def test_crds_are_copies(file: str, request: pytest.FixtureRequest) -> None:
    """The chart brings the kinds that the code was tested with; `--update-golden` copies them."""
    original = (CRDS / file).read_text()
    if request.config.getoption("--update-golden"):
        (helm.CHART / "crds" / file).write_text(original)
    assert (helm.CHART / "crds" / file).read_text() == original
    assert {path.name for path in (helm.CHART / "crds").glob("*")} == {path.name for path in CRDS.glob("*")}


def test_versions() -> None:
    """Without a tag, the image is of this version."""
    chart = yaml.safe_load((helm.CHART / "Chart.yaml").read_text())

    assert chart["appVersion"] == __version__


def test_controller_is_the_same(defaults: list[dict[str, Any]]) -> None:
    """The chart installs what `templates/controller` says, right by right and flag by flag; only labels come besides."""
    wanted = templates.render("controller", {"namespace": helm.NAMESPACE, "image": IMAGE})
    found = [manifest for manifest in defaults if not helm.is_hook(manifest)]

    assert _by_name(map(_without_labels, found)) == _by_name(map(_without_labels, wanted))


def test_cleanup_may_delete_what_there_is(defaults: list[dict[str, Any]]) -> None:
    """Cluster-wide, it may delete what components have and nothing else."""
    [role] = [m for m in defaults if m["kind"] == "ClusterRole" and helm.is_hook(m, "pre-delete")]
    [rule] = [rule for rule in role["rules"] if "delete" in rule["verbs"] and "clusterroles" in rule["resources"]]
    kinds = {"ClusterRole", "ClusterRoleBinding"}

    named = {key.name for key in components.all_keys(helm.NAMESPACE) if key.kind.kind in kinds}
    assert set(rule["resourceNames"]) == named


def test_upgrade_may_change_our_crds(defaults: list[dict[str, Any]]) -> None:
    """The hook of an upgrade may change the CRDs that it brings, and no other."""
    [role] = [m for m in defaults if m["kind"] == "ClusterRole" and helm.is_hook(m, "pre-upgrade")]
    [rule] = [rule for rule in role["rules"] if "update" in rule["verbs"]]

    assert sorted(rule["resourceNames"]) == sorted(each["metadata"]["name"] for each in templates.read_definitions())


def test_release_restarts_no_pod(tmp_path: Path, defaults: list[dict[str, Any]]) -> None:
    """Another version of the chart changes no pod template of what runs."""
    chart = helm.copy_chart(tmp_path, version="0.2.0")

    before, after = (_templates_of(found) for found in (defaults, helm.render(chart=chart)))
    assert before == after
    assert before


@pytest.mark.parametrize(
    ("values", "said"),
    [
        pytest.param({"replica": 2}, "replica", id="a key that nobody knows"),
        pytest.param({"image": {"repo": "x"}}, "repo", id="a key of the image that nobody knows"),
        pytest.param({"image": {"repository": ""}}, "/image/repository", id="no repository"),
        pytest.param({"image": {"digest": "sha256:123"}}, "/image/digest", id="half a digest"),
        pytest.param({"image": {"pullPolicy": "always"}}, "/image/pullPolicy", id="wrong case"),
        pytest.param({"replicas": "2"}, "/replicas", id="text for a number"),
        pytest.param({"policy": "Cluster_Policy"}, "/policy", id="no name of an object"),
        pytest.param({"rollout": {"canary": "pool in (a)"}}, "/rollout/canary", id="no selector of ours"),
        pytest.param({"rollout": {"stopOnRefusal": "yes"}}, "/rollout/stopOnRefusal", id="text for a brake"),
        pytest.param({"logLevel": "trace"}, "/logLevel", id="no level"),
        pytest.param({"discoveryGraceSeconds": -1}, "/discoveryGraceSeconds", id="less than no time"),
        pytest.param({"extraArgs": ["resync"]}, "/extraArgs/0", id="no flag"),
        pytest.param({"imagePullSecrets": ["secret"]}, "/imagePullSecrets/0", id="the name alone"),
        pytest.param({"tolerations": [{"effect": "NoRun"}]}, "/tolerations/0/effect", id="no effect"),
        pytest.param({"config": {"data": {"any": {"version": "v1"}}}}, "/config/data/any", id="not text"),
        pytest.param({"config": {"create": True}}, "config/data is empty", id="nothing to create"),
        pytest.param({"config": {"data": {"a b": "version: v1"}}}, "a b", id="no label value"),
        pytest.param({"clusterPolicy": {"create": "yes"}}, "/clusterPolicy/create", id="text for a boolean"),
        pytest.param(
            {"configWebhook": {"failurePolicy": "Warn"}}, "/configWebhook/failurePolicy", id="no failure policy"
        ),
        pytest.param({"alerts": {"labels": {"a": 1}}}, "/alerts/labels/a", id="a label that is no text"),
        pytest.param({"serviceMonitor": {"interval": "often"}}, "/serviceMonitor/interval", id="no duration"),
        pytest.param({"cleanup": {"timeoutSeconds": 0}}, "/cleanup/timeoutSeconds", id="no time at all"),
    ],
)
def test_values_are_refused(values: dict[str, Any], said: str, tmp_path: Path) -> None:
    """What cannot be is refused before anything reaches a cluster, and named."""
    assert said in helm.refusal_of(values, tmp_path).replace(".", "/")


@pytest.mark.parametrize(
    ("values", "says"),
    [
        pytest.param(
            "policy=mine", "follows a ClusterPolicy named mine once there is one", id="a policy of somebody else"
        ),
        pytest.param("clusterPolicy.create=true", "ClusterPolicy cluster-policy belongs to this release", id="its own"),
        pytest.param("crds.upgrade=false", "helm show crds CHART | kubectl apply", id="CRDs by hand"),
        pytest.param("cleanup.enabled=false", "run `gpushare cleanup` yourself", id="cleanup by hand"),
    ],
)
def test_notes(values: str, says: str, tmp_path: Path) -> None:
    """Whoever installs it reads what to do next; nothing that may be otherwise in the cluster is claimed."""
    command = ("install", helm.RELEASE, helm.CHART, "--dry-run=client", "--kubeconfig", tmp_path / "none")
    got = helm.run(*command, "--set", values)
    assert got.returncode == 0, got.stderr

    _, _, notes = got.stdout.partition("NOTES:")
    assert says in notes
    assert "psa.enabled of the policy is not set" in notes


def test_certificates_of_others() -> None:
    """Where somebody else keeps the certificate, the controller may read that one Secret, and change nothing."""
    values = ("configWebhook.enabled=true", "configWebhook.secret=theirs")
    found = helm.render(*(part for value in values for part in ("--set", value)))
    about = [item for item in found if item["metadata"]["name"] == names.CONFIG_WEBHOOK]

    assert {item["kind"] for item in about} == {"Service", "ValidatingWebhookConfiguration", "Role", "RoleBinding"}
    [role] = [item for item in about if item["kind"] == "Role"]
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["theirs"], "verbs": ["get"]}
    ]
    [controller] = [item for item in found if item["kind"] == "Deployment"]
    assert "--webhook-secret=theirs" in controller["spec"]["template"]["spec"]["containers"][0]["args"]


def _by_name(found: Any) -> dict[tuple[str, str], dict[str, Any]]:
    return {(manifest["kind"], manifest["metadata"]["name"]): manifest for manifest in found}


def _without_labels(manifest: dict[str, Any]) -> dict[str, Any]:
    return manifest | {"metadata": {k: v for k, v in manifest["metadata"].items() if k != "labels"}}


def _templates_of(found: list[dict[str, Any]]) -> list[Any]:
    return [m["spec"]["template"] for m in found if m["kind"] == "Deployment"]
