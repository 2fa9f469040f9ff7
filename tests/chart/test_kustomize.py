"""Installing by kubectl alone: the same objects as by the chart, through the real kubectl."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpushare import data, names
from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.render import templates
from support import helm, releases
from support.releases import Person
from support.snapshots import time_slicing

FOLDER = helm.ROOT / "kustomize"
INSTALLING = helm.ROOT / "docs" / "installing.md"
IMAGE = "registry.example/gpu-sharing-operator@sha256:" + "0" * 64


def namespace() -> Manifest:
    """Agents touch the devices of their nodes, which only privileged pods may."""
    labels = dict.fromkeys(names.LABELS_POD_SECURITY, "privileged")
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": helm.NAMESPACE, "labels": labels}}


def generated() -> dict[str, str]:
    """What the files have to say."""
    definitions = [path.read_text() for path in sorted(data.path_of("crds").glob("*.yaml"))]
    values = {"namespace": helm.NAMESPACE, "image": f"{names.IMAGE}:{helm.app_version()}"}
    return {
        "namespace.yaml": yaml.safe_dump(namespace(), sort_keys=False),
        "crds.yaml": "---\n".join(definitions),
        "operator.yaml": yaml.safe_dump_all(templates.render("controller", values), sort_keys=False, width=120),
    }


@pytest.mark.parametrize("file", sorted(generated()))
def test_files(file: str, request: pytest.FixtureRequest) -> None:
    """They are what `templates/controller` says, as the chart is; `--update-golden` writes them."""
    if request.config.getoption("--update-golden"):
        (FOLDER / file).write_text(generated()[file])
        return
    assert (FOLDER / file).read_text() == generated()[file]


async def built(person: Person, folder: Path) -> list[Manifest]:
    got = await person.kubectl("kustomize", folder)
    assert got.returncode == 0, got.stderr
    return [manifest for manifest in yaml.safe_load_all(got.stdout) if manifest]


@pytest.fixture
async def person() -> AsyncIterator[Person]:
    async with releases.cluster(nodes=1) as person:
        yield person


async def test_same_as_the_chart(person: Person) -> None:
    """Whoever has installed by one finds nothing else with the other; labels, hooks and the namespace apart."""
    by_kubectl = {_name_of(item): _bare(item) for item in await built(person, FOLDER)}
    by_helm = {_name_of(item): _bare(item) for item in helm.render() if not helm.is_hook(item)}
    added = {("Namespace", helm.NAMESPACE)}
    added |= {("CustomResourceDefinition", yaml.safe_load(path.read_text())["metadata"]["name"])
              for path in (helm.CHART / "crds").glob("*.yaml")}  # fmt: skip

    assert by_kubectl.keys() - by_helm.keys() == added
    assert {name: item for name, item in by_kubectl.items() if name not in added} == by_helm


async def test_overlay(person: Person, tmp_path: Path) -> None:
    """The overlay that the page shows names another image, for controller and agents."""
    [shown] = re.findall(r"```yaml\n# kustomization\.yaml\n(.*?)```", INSTALLING.read_text(), re.DOTALL)
    overlay = yaml.safe_load(shown)
    # kubectl follows relative paths only, and the page has an address.
    (tmp_path / "base").mkdir()
    for path in FOLDER.glob("*.yaml"):
        (tmp_path / "base" / path.name).write_text(path.read_text())
    overlay["resources"] = [{"gpu": "base"}.get(each, "base") for each in overlay["resources"]]
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))

    [deployment] = [item for item in await built(person, tmp_path) if item["kind"] == "Deployment"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    env = {each["name"]: each.get("value") for each in container["env"]}
    assert container["image"] == env[names.ENV_DEVICE_PLUGIN_IMAGE] == IMAGE


@pytest.mark.timeout(400)
async def test_from_apply_to_delete(person: Person) -> None:
    """It shares GPUs; applied again it is fine; and in the end only CRDs, namespace and what people made are left."""
    for expected in ("serverside-applied", "serverside-applied"):
        got = await person.kubectl("apply", "--server-side", "-k", FOLDER)
        assert got.returncode == 0, got.stderr
        assert got.stdout.count(expected) == len(got.stdout.splitlines())
    await person.cluster.create(releases.manifest_of(manifests.CONFIG_MAP, "sharing", data={"two": time_slicing(2)}))
    required = ("operator", "daemonsets", "driver", "toolkit", "dcgm", "dcgmExporter", "nodeStatusExporter", "gfd")
    spec: dict[str, Any] = {key: {} for key in required}
    spec["devicePlugin"] = {"config": {"name": "sharing", "default": "two"}}
    await person.cluster.create(releases.manifest_of(manifests.CLUSTER_POLICY, "cluster-policy", spec=spec))

    async def shared() -> bool:
        return await person.shares() == {"8"}

    await person.until(shared)
    got = await person.run(
        sys.executable,
        "-m",
        "gpushare",
        "cleanup",
        "--kubeconfig",
        str(person.kubeconfig),
        "--namespace",
        helm.NAMESPACE,
    )
    assert got.returncode == 0, got.stdout + got.stderr
    got = await person.kubectl("delete", "-f", FOLDER / "operator.yaml")
    assert got.returncode == 0, got.stderr

    async def is_gone() -> bool:
        role = await person.cluster.get(manifests.CLUSTER_ROLE, names.CONTROLLER)
        return role is None and not await person.all(manifests.POD)

    await person.until(is_gone)
    [node] = await person.all(manifests.NODE)
    assert not [key for key in node["metadata"]["labels"] if key.startswith("nvidia.com/gpu.deploy.")]
    assert await person.cluster.get(manifests.CLUSTER_POLICY, "cluster-policy") is not None
    assert await person.cluster.get(manifests.CONFIG_MAP, "sharing", helm.NAMESPACE) is not None


def _name_of(manifest: Manifest) -> tuple[str, str]:
    return manifest["kind"], manifest["metadata"]["name"]


def _bare(manifest: Manifest) -> Manifest:
    return manifest | {"metadata": {key: value for key, value in manifest["metadata"].items() if key != "labels"}}
