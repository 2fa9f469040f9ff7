"""The real helm, and the chart."""

from __future__ import annotations

import functools
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "gpu-sharing-operator"
NAMESPACE = "gpu-operator"
RELEASE = "sharing"
_PATIENCE = 180
"""Seconds that a cluster may take for what changes in it."""
_SECONDS = 240


@functools.cache
def find() -> Path:
    """The program, fetched once a machine. Where it cannot be had, the test fails and says what to do."""
    got = subprocess.run(
        [ROOT / "scripts" / "fetch_helm.sh"], capture_output=True, text=True, check=False, timeout=_SECONDS
    )
    if got.returncode:
        pytest.fail(got.stderr, pytrace=False)
    return Path(got.stdout.strip())


def run(*args: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs helm to its end."""
    return subprocess.run([find(), *args], capture_output=True, text=True, check=False, timeout=_SECONDS)


def change(verb: str, kubeconfig: Path, *args: str | Path) -> None:
    """Installs, upgrades or uninstalls the release in a cluster, and waits until it is done. Raises AssertionError."""
    place = ("--kubeconfig", kubeconfig, "--namespace", NAMESPACE)
    done = run(verb, RELEASE, *args, *place, "--wait", f"--timeout={_PATIENCE}s")
    assert done.returncode == 0, done.stdout + done.stderr


def render(*args: str | Path, chart: Path = CHART) -> list[dict[str, Any]]:
    """What the chart gives, hooks included, CRDs not."""
    got = run("template", RELEASE, chart, "--namespace", NAMESPACE, *args)
    assert got.returncode == 0, got.stderr
    return [manifest for manifest in yaml.safe_load_all(got.stdout) if manifest]


def refusal_of(values: dict[str, Any], folder: Path) -> str:
    """Why helm does not take values; empty: it takes them."""
    path = folder / "values.yaml"
    path.write_text(json.dumps(values))
    got = run("template", RELEASE, CHART, "--values", path)
    return got.stderr if got.returncode else ""


def app_version() -> str:
    """Tag of the image that the chart installs where nobody names one."""
    return str(yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"])


def is_hook(manifest: dict[str, Any], when: str = "") -> bool:
    """Whether an object exists only while an upgrade or an uninstall runs: any of them, or that of the name."""
    hook = manifest["metadata"].get("annotations", {}).get("helm.sh/hook", "")
    return hook == when if when else bool(hook)


def copy_chart(folder: Path, *, version: str) -> Path:
    """The same chart under another version."""
    for path in sorted(CHART.rglob("*")):
        if path.is_file():
            copy = folder / "chart" / path.relative_to(CHART)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(path.read_text())
    description = folder / "chart" / "Chart.yaml"
    description.write_text(description.read_text().replace("\nversion: 0.1.0", f"\nversion: {version}"))
    return folder / "chart"
