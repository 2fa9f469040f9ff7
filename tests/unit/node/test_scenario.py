"""Scenarios: the built-in ones, files, and what is said about a wrong file."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpushare.errors import ConfigurationError
from gpushare.nvml.simulated import SimulatedNvml
from gpushare.sandbox import scenario
from gpushare.sandbox.node.specs import Taint


def test_walk_through() -> None:
    """Four T4, two A100 of which one is split, and a node without GPUs."""
    nodes = {node.spec.name: node for node in scenario.load().nodes}

    assert list(nodes) == ["gpu01", "gpu02", "cpu01"]
    found = {}
    for name in ("gpu01", "gpu02"):
        nvml = SimulatedNvml.from_mapping(nodes[name].hardware, seed=name)
        nvml.start()
        gpus = [nvml.gpu(index) for index in range(nvml.count())]
        found[name] = [(gpu.product, [instance.profile for instance in gpu.mig]) for gpu in gpus]
        nvml.stop()
    assert found == {
        "gpu01": [("Tesla T4", [])] * 4,
        "gpu02": [("NVIDIA A100-SXM4-40GB", ["1g.5gb", "2g.10gb", "3g.20gb"]), ("NVIDIA A100-SXM4-40GB", [])],
    }
    assert nodes["cpu01"].hardware == {}
    present = "feature.node.kubernetes.io/pci-10de.present"
    assert [present in node.spec.labels for node in nodes.values()] == [True, True, False]
    assert all("feature.node.kubernetes.io/system-os_release.ID" in node.spec.labels for node in nodes.values())


@pytest.mark.parametrize(
    ("number", "first", "last"), [(1, "gpu01", "gpu01"), (50, "gpu01", "gpu50"), (120, "gpu001", "gpu120")]
)
def test_many_nodes(number: int, first: str, last: str) -> None:
    """Names sort as their numbers do."""
    names = [node.spec.name for node in scenario.load(nodes=number).nodes]
    assert (len(names), names[0], names[-1]) == (number, first, last)
    assert names == sorted(names)


def test_file(tmp_path: Path) -> None:
    """Everything that a file can say."""
    path = tmp_path / "scenario.yaml"
    path.write_text("""\
nodes:
- name: big.example
  labels: {example.com/rack: r1, nvidia.com/device-plugin.config: tesla-t4}
  taints:
  - {key: nvidia.com/gpu, effect: NoSchedule}
  - {key: a, value: b, effect: NoExecute}
  cpu: 96
  memory: 1Ti
  discovery: false
  driver: {version: 580.95.05, cuda: "13.0"}
  gpus:
  - {model: Tesla-T4, count: 2}
- name: small
""")
    big, small = scenario.load(path).nodes

    assert dict(big.spec.labels) == {"example.com/rack": "r1", "nvidia.com/device-plugin.config": "tesla-t4"}
    assert big.spec.taints == (
        Taint(key="nvidia.com/gpu", effect="NoSchedule"),
        Taint(key="a", value="b", effect="NoExecute"),
    )
    assert (big.spec.cpu, big.spec.memory) == ("96", "1Ti")
    assert big.hardware == {
        "driver": {"version": "580.95.05", "cuda": "13.0"},
        "gpus": [{"model": "Tesla-T4", "count": 2}],
    }
    assert (small.spec.name, small.hardware) == ("small", {})


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        pytest.param("", ["must hold keys, indented below it, not empty"], id="empty"),
        pytest.param("nodes: []", ["nodes (line 1): must have at least one node; write `- name: gpu01`"], id="no node"),
        pytest.param("nodes: 3", ['nodes (line 1): must be a list, each item after a "-", not 3'], id="no list"),
        pytest.param(
            "node: []",
            ['node (line 1): unknown key; did you mean "nodes"?', "nodes (line 1): is missing"],
            id="misspelt",
        ),
        pytest.param(
            "nodes:\n- name: a\n  gpu: []\n",
            ['nodes[0].gpu (line 3): unknown key; did you mean "gpus"?'],
            id="unknown key of a node",
        ),
        pytest.param(
            "nodes:\n- name: a\n  x: 1\n",
            [
                "nodes[0].x (line 3): unknown key; known here: name, labels, taints, cpu, memory, discovery, driver, gpus"
            ],
            id="nothing like it",
        ),
        pytest.param(
            "nodes:\n- name: a\n- name: a\n",
            ['nodes[1].name (line 3): "a" is the name of nodes[0] too; choose another'],
            id="same name",
        ),
        pytest.param(
            "nodes:\n- name: a\n  cpu: 1\n  cpu: 2\n",
            ["nodes[0].cpu (line 4): stands here twice, first in line 3; keep one of the two"],
            id="key twice",
        ),
        pytest.param(
            "nodes:\n- name: GPU_1\n",
            ['nodes[0].name (line 2): "GPU_1" is no node name; use at most 63 lower-case letters, digits, "-" and "."'],
            id="bad name",
        ),
        pytest.param("nodes:\n- cpu: 4\n", ["nodes[0].name (line 2): is missing"], id="no name"),
        pytest.param(
            "nodes:\n- name: 7\n",
            ["nodes[0].name (line 2): must be text (put it in quotes), not 7"],
            id="number as name",
        ),
        pytest.param(
            "nodes:\n- name: a\n  memory: lots\n  cpu: [1]\n",
            [
                'nodes[0].memory (line 3): "lots" is no quantity; write a number above 0 such as 16, 500m, 64Gi',
                "nodes[0].cpu (line 4): must be a number or a quantity such as 64Gi, not a list",
            ],
            id="quantities",
        ),
        pytest.param(
            "nodes:\n- name: a\n  taints: [{key: x, effect: Never}]\n",
            ['nodes[0].taints[0].effect (line 3): must be one of NoSchedule, PreferNoSchedule, NoExecute, not "Never"'],
            id="effect",
        ),
        pytest.param(
            'nodes:\n- name: a\n  labels:\n    "bad key": x\n    good: "no good"\n    flag: true\n',
            [
                'nodes[0].labels.bad key (line 4): "bad key" is no label key; they look like example.com/rack',
                (
                    'nodes[0].labels.good (line 5): "no good" is no label value; '
                    'use at most 63 letters, digits, "-", "_" and "."'
                ),
                "nodes[0].labels.flag (line 6): must be text (put it in quotes), not true",
            ],
            id="labels",
        ),
        pytest.param(
            "nodes:\n- name: a\n  discovery: 1\n",
            ["nodes[0].discovery (line 3): must be true or false, not 1"],
            id="bool",
        ),
    ],
)
def test_wrong_files(text: str, problems: list[str]) -> None:
    """Every problem at once, with its place, its line and what to write."""
    with pytest.raises(ConfigurationError) as refused:
        scenario.parse(text)
    assert [str(problem) for problem in refused.value.problems] == problems


def test_wrong_hardware() -> None:
    """What the simulated driver refuses is told with the place in the file."""
    with pytest.raises(ConfigurationError) as refused:
        scenario.parse("nodes:\n- name: a\n  gpus:\n  - {model: Tesla-T4}\n  - {model: Riva-TNT2}\n")
    (problem,) = refused.value.problems
    assert (problem.path, problem.line) == ("nodes[0].gpus[1].model", 5)


def test_unreadable_file(tmp_path: Path) -> None:
    """No file, or no text."""
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        scenario.load(tmp_path / "absent.yaml")
    with pytest.raises(ConfigurationError, match="is no text file"):
        scenario.load(tmp_path / "binary")
