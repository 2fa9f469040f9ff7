"""`gpushare plan` on described nodes, as it is typed."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from gpushare.cli import commands

NODES = """\
nodes:
- {name: gpu01, driver: {version: 550.90.07, cuda: "12.4"}, gpus: [{model: Tesla-T4, count: 4}]}
- {name: gpu02, driver: {version: 550.90.07, cuda: "12.4"}, gpus: [{model: Tesla-T4, count: 1}]}
- {name: cpu01}
"""
CHANGE = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: sharing}
data:
  all: "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"
---
apiVersion: nvidia.com/v1
kind: ClusterPolicy
metadata: {name: p}
spec: {devicePlugin: {config: {name: sharing, default: all}}}
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, ...]:
    """The options for these nodes and this change."""
    nodes, change = tmp_path / "nodes.yaml", tmp_path / "change.yaml"
    nodes.write_text(NODES)
    change.write_text(CHANGE)
    return ("--offline", str(nodes), "-f", str(change))


def typed(*words: str) -> tuple[int, str]:
    """Exit code, and what was written to standard error; standard output is `capsys`'s."""
    stderr = io.StringIO()
    return commands.run(("plan", *words), stderr=stderr), stderr.getvalue()


def test_offline(files: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """Every node that has GPUs, with what it would offer."""
    assert typed(*files) == (0, "")

    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[2:5]] == [
        ["NODE", "CONFIGURATION", "RESOURCE", "BEFORE", "AFTER"],
        ["gpu01", "-", "->", "all", "(default)", "nvidia.com/gpu", "-", "16"],
        ["gpu02", "-", "->", "all", "(default)", "nvidia.com/gpu", "-", "4"],
    ]
    assert "gpu01: label nvidia.com/gpu.replicas: (none) -> 4" in lines


def test_refused(files: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """A label that names no key is refused on its node only."""
    assert typed(*files, "--label", "gpu02", "nvidia.com/device-plugin.config=few", "-o", "json") == (1, "")

    one, two = json.loads(capsys.readouterr().out)["nodes"]
    assert (one["refusals"], one["resources"]["after"]) == ([], {"nvidia.com/gpu": 16})
    assert 'names "few", which ConfigMap gpu-operator/sharing does not have' in two["refusals"][0]
    assert two["resources"]["after"] == {"nvidia.com/gpu": 1}


def test_other_namespace(files: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A ConfigMap in another namespace than the operator's is refused, and where it is said."""
    (tmp_path / "change.yaml").write_text(CHANGE.replace("{name: sharing}", "{name: sharing, namespace: mine}"))

    assert typed(*files)[0] == 1
    assert "ConfigMap sharing is in namespace mine, but must be in gpu-operator" in capsys.readouterr().out


def test_other_objects(files: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Nobody takes a file of pods, or of a version that there is not, for a change without consequences."""
    others = (
        "apiVersion: v1, kind: Pod, metadata: {name: two-shares}",
        "apiVersion: v2, kind: ConfigMap, metadata: {name: m}",
    )
    (tmp_path / "change.yaml").write_text(CHANGE + "".join(f"\n---\n{{{other}}}\n" for other in others))

    typed(*files)
    said = "warning: neither ClusterPolicies nor ConfigMaps, and so not looked at: v1 Pod two-shares, v2 ConfigMap m"
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["--label", "gpu01", "key"], "write KEY=VALUE, or KEY- to take it away", id="label"),
        pytest.param(["--label", "gpu09", "a=b"], "there is no node gpu09", id="no such node"),
        pytest.param(["-f", "nowhere.yaml"], "nowhere.yaml: No such file", id="no file"),
    ],
)
def test_wrong_usage(words: list[str], message: str, files: tuple[str, ...]) -> None:
    """What cannot be meant is 2, so that a pipeline does not take it for a verdict."""
    code, stderr = typed(*files, *words)

    assert code == 2
    assert message in stderr


def test_files_that_cannot_be_used(files: tuple[str, ...], tmp_path: Path) -> None:
    """Each problem with the file's name and its line."""
    (tmp_path / "nodes.yaml").write_text("nodes:\n- {name: a, gpu: []}\n")
    code, stderr = typed(*files)
    assert code == 2
    assert f"{tmp_path}/nodes.yaml: nodes[0].gpu (line 2): " in stderr

    (tmp_path / "change.yaml").write_text("sharing: {}\n")
    code, stderr = typed(*files)
    assert code == 2
    assert f"{tmp_path}/change.yaml: line 1: must have apiVersion, kind and metadata.name" in stderr


def test_no_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a kubeconfig there is nothing to look at."""
    monkeypatch.setenv("KUBECONFIG", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    code, stderr = typed()

    assert code == 2
    assert f"no cluster is named: there is no {tmp_path}/.kube/config" in stderr
