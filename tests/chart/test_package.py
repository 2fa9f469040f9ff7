"""Node feature discovery: brought by packages, and missed by nobody who does not want it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from gpushare import names
from support import helm

SCRIPT = helm.ROOT / "scripts" / "package_chart.sh"
ENABLED = ("--set", "nfd.enabled=true")
WORKER = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: worker
data:
  config: {{ toJson .Values.worker.config | quote }}
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Our chart with a stand-in for node feature discovery's."""
    folder = tmp_path_factory.mktemp("package")
    other = folder / "node-feature-discovery"
    (other / "templates").mkdir(parents=True)
    (other / "Chart.yaml").write_text("apiVersion: v2\nname: node-feature-discovery\nversion: 0.19.3\n")
    (other / "templates" / "worker.yaml").write_text(WORKER)
    environ = {**os.environ, "NFD_REPOSITORY": f"file://{other}", "HELM": str(helm.find())}
    got = subprocess.run([SCRIPT, folder], env=environ, capture_output=True, text=True, check=False, timeout=200)
    assert got.returncode == 0, got.stderr
    [package] = folder.glob("gpu-sharing-operator-*.tgz")
    return package


def test_enabled(package: Path) -> None:
    """It comes along, set up so that it says of nodes what we look for."""
    assert helm.run("lint", "--strict", package, *ENABLED).returncode == 0
    [worker] = [item for item in helm.render(*ENABLED, chart=package) if item["metadata"]["name"] == "worker"]
    pci = yaml.safe_load(worker["data"]["config"])["sources"]["pci"]

    assert pci["deviceLabelFields"] == ["vendor"]
    assert set(pci["deviceClassWhitelist"]) == {"0300", "0302"}
    assert names.LABELS_NFD_GPU[0] == "feature.node.kubernetes.io/pci-10de.present"


def test_disabled(package: Path) -> None:
    """Without the switch, the package gives what the chart gives."""
    assert helm.render(chart=package) == helm.render()


def test_not_in_it(tmp_path: Path) -> None:
    """Where the switch can do nothing, that is said, with what to do."""
    assert "scripts/package_chart.sh" in helm.refusal_of({"nfd": {"enabled": True}}, tmp_path)


def test_no_repository(tmp_path: Path) -> None:
    """The script asks for what it cannot know."""
    environ = {key: value for key, value in os.environ.items() if key != "NFD_REPOSITORY"}
    got = subprocess.run([SCRIPT, tmp_path], env=environ, capture_output=True, text=True, check=False, timeout=200)

    assert got.returncode == 2
    assert "NFD_REPOSITORY=" in got.stderr
