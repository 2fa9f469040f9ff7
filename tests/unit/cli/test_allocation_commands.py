"""`gpushare topology` and `gpushare allocate`, as they are typed."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import yaml

from gpushare.cli import commands
from gpushare.nvml import real
from gpushare.nvml.simulated import SimulatedNvml

EXAMPLES = Path(__file__).parents[3] / "examples" / "05-topologies"
DGX1 = str(EXAMPLES / "dgx1-volta.yaml")


def typed(*words: str) -> tuple[int, str]:
    """Exit code, and what was written to standard error; standard output is `capsys`'s."""
    stderr = io.StringIO()
    return commands.run(words, stderr=stderr), stderr.getvalue()


def test_topology(capsys: pytest.CaptureFixture[str]) -> None:
    """The matrix, with nvidia-smi's words and go-gpuallocator's scores."""
    assert typed("topology", "-f", DGX1) == (0, "")

    first, *rows = capsys.readouterr().out.splitlines()
    assert first.split() == [*(f"GPU{index}" for index in range(8)), "NUMA", "PRODUCT"]
    assert rows[2].split()[:9] == ["GPU2", "NV1", "130", "NV2", "230", "X", "NV2", "250", "SYS"]


def test_reference_scores(capsys: pytest.CaptureFixture[str]) -> None:
    """go-gpuallocator does not see NVSwitches."""
    file = str(EXAMPLES / "hgx-h100.yaml")
    assert typed("topology", "-f", file, "-o", "json")[0] == 0
    counted = json.loads(capsys.readouterr().out)
    assert typed("topology", "-f", file, "-o", "json", "--reference-scores")[0] == 0
    not_counted = json.loads(capsys.readouterr().out)

    assert [counted["links"][0]["score"], not_counted["links"][0]["score"]] == [1850, 50]


def test_topology_saved_and_read_again(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """What a machine with GPUs printed answers questions on another."""
    assert typed("topology", "-f", DGX1, "-o", "yaml")[0] == 0
    saved = tmp_path / "saved.yaml"
    saved.write_text(capsys.readouterr().out)

    assert typed("allocate", "4", "-f", str(saved), "-o", "yaml") == (0, "")
    assert [gpu["index"] for gpu in yaml.safe_load(capsys.readouterr().out)["gpus"]] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(["2"], [0, 3], id="best effort"),
        pytest.param(["2", "--policy", "simple"], [0, 1], id="simple"),
        pytest.param(["2", "--policy", "static-dgx1-pascal"], [0, 2], id="static"),
        pytest.param(["2", "--must-include", "4"], [4, 7], id="must include"),
        pytest.param(["3", "--in-use", "0, 1", "--in-use", "2"], [5, 6, 7], id="in use"),
    ],
)
def test_allocate(words: list[str], expected: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    """Each policy, and what is required or in use."""
    assert typed("allocate", *words, "-f", DGX1, "-o", "json") == (0, "")
    assert [gpu["index"] for gpu in json.loads(capsys.readouterr().out)["gpus"]] == expected


def test_allocate_by_uuid(capsys: pytest.CaptureFixture[str]) -> None:
    """GPUs may be named by their UUIDs, as they are in a pod."""
    typed("topology", "-f", DGX1, "-o", "json")
    uuid = json.loads(capsys.readouterr().out)["gpus"][5]["uuid"]

    assert typed("allocate", "2", "-f", DGX1, "--must-include", uuid) == (0, "")
    assert "5-6   NV2   230" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        pytest.param(["allocate", "9", "-f", DGX1], 1, "9 wanted, but only 8 free", id="too many"),
        pytest.param(["allocate", "3", "-f", DGX1, "--policy", "static-dgx2"], 1, "has no set of 3", id="no such set"),
        pytest.param(
            ["allocate", "2", "-f", DGX1, "--in-use", "3", "--must-include", "3"], 1, "GPU 3 is required, but not free",
            id="required and in use",
        ),
        pytest.param(["allocate", "2", "-f", DGX1, "--in-use", "11"], 1, "no GPU 11; known: GPU 0, 1", id="unknown GPU"),
        pytest.param(["allocate", "0", "-f", DGX1], 2, "0 is not in the range x>=1", id="none"),
        pytest.param(["allocate", "2", "-f", DGX1, "--in-use", "1,,2"], 2, "has an empty entry", id="empty entry"),
        pytest.param(["allocate", "2", "-f", DGX1, "--policy", "best"], 2, "'best' is not one of", id="unknown policy"),
        pytest.param(["topology", "--node", "n"], 2, "give the scenario with --file", id="node without a scenario"),
        pytest.param(["topology", "-f", "nowhere.yaml"], 1, "nowhere.yaml: No such file", id="no file"),
    ],
)  # fmt: skip
def test_refusals(words: list[str], code: int, message: str) -> None:
    """1 where it cannot be had, 2 where it cannot be meant; and why."""
    found, stderr = typed(*words)

    assert found == code
    assert message in stderr


def test_file_that_cannot_be_used(tmp_path: Path) -> None:
    """Each problem with the file's name, its place and the remedy."""
    file = tmp_path / "node.yaml"
    file.write_text("gpus:\n- {model: T5}\n- {model: T6}\n")
    code, stderr = typed("topology", "-f", str(file))

    assert code == 1
    assert f"{file}: gpus[0].model (line 2): unknown model 'T5'" in stderr
    assert f"{file}: gpus[1].model (line 3): unknown model 'T6'" in stderr


def test_no_text(tmp_path: Path) -> None:
    """A file that is no text is said to be none."""
    file = tmp_path / "node.bin"
    file.write_bytes(b"\xff\xfe\x00")

    assert typed("topology", "-f", str(file)) == (1, f"Error: {file}: is no text\n")


def test_node_without_gpus(tmp_path: Path) -> None:
    """Nothing to show is an error, not an empty table."""
    file = tmp_path / "node.yaml"
    file.write_text("gpus: []\n")

    assert typed("topology", "-f", str(file))[0] == 1


def test_warnings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is odd about the links is told beside the matrix."""
    file = tmp_path / "node.yaml"
    file.write_text("gpus: [{model: A100, nvlink: {1: 4}}, {model: A100, nvlink: {0: 3}}]\n")

    assert typed("topology", "-f", str(file))[0] == 0
    output = capsys.readouterr()
    assert output.err.startswith("warning: gpus[0].nvlink: 4 NVLinks to GPU 1, which counts 3 back")
    assert "NV3 330" in output.out


def test_this_machine(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a file the driver is asked, here a simulated one."""
    nvml = SimulatedNvml.from_mapping({"gpus": [{"model": "A100", "count": 2, "switch": 0, "nvlink": {"switch": 12}}]})
    monkeypatch.setattr(real, "RealNvml", lambda: nvml)

    assert typed("topology", "-o", "json") == (0, "")
    assert [link["score"] for link in json.loads(capsys.readouterr().out)["links"]] == [1250]


def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a driver says so, and what to do."""
    nvml = SimulatedNvml.from_mapping({"gpus": []})
    nvml.fail("the NVIDIA driver cannot be used")
    monkeypatch.setattr(real, "RealNvml", lambda: nvml)

    expected = "Error: the NVIDIA driver cannot be used; describe a node in a file and give it with --file\n"
    assert typed("topology") == (1, expected)


def test_description_without_gpus(tmp_path: Path) -> None:
    """Who has given a file is not told to give one."""
    (tmp_path / "none.yaml").write_text("gpus: []\n")

    code, said = typed("topology", "-f", str(tmp_path / "none.yaml"))

    assert (code, said) == (1, f"Error: {tmp_path}/none.yaml: there is no GPU in it\n")
