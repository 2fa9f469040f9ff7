"""`gpushare validate`, as it is typed."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from gpushare.cli import commands

EXAMPLES = Path(__file__).parents[3] / "examples"
BROKEN = str(EXAMPLES / "04-bad-input" / "broken-configs.yaml")
FINE = str(EXAMPLES / "01-time-slicing" / "time-slicing-config-all.yaml")


def typed(*words: str) -> tuple[int, str]:
    """Exit code, and what was written to standard error; standard output is `capsys`'s."""
    stderr = io.StringIO()
    return commands.run(("validate", *words), stderr=stderr), stderr.getvalue()


def test_fine_and_broken(capsys: pytest.CaptureFixture[str]) -> None:
    """Each file has its lines, and one problem in any of them is 1."""
    assert typed(FINE) == (0, "")
    assert typed(FINE, BROKEN) == (1, "")

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == lines[1] == f"{FINE}: fine (any)"
    assert (
        f'{BROKEN}: typo: sharing.timeSlicing.resources[0].replica (line 25): unknown key; did you mean "replicas"?'
        in lines
    )


def test_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """- is standard input, here for a program."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"version: v2\n")))

    assert typed("-", "-o", "json")[0] == 1
    body = json.loads(capsys.readouterr().out)
    assert (body["valid"], body["files"][0]["checked"][0]["problems"][0]["path"]) == (False, "version")


def test_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no UTF-8 is said to be none, wherever it comes from."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff\x00")))

    code, said = typed("-")

    assert (code, "-: is no text" in said) == (2, True), said


def test_hardware(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """What is right by itself and not for the node is told with --fit."""
    node, config = tmp_path / "node.yaml", tmp_path / "config.yaml"
    node.write_text("gpus: [{model: Tesla-T4, count: 2}]\n")
    config.write_text(
        "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, rename: nvidia.com/few, devices: [7], replicas: 2}]}}\n"
    )

    assert typed(str(config))[0] == 0
    assert typed(str(config), "-f", str(node))[0] == 1
    assert "sharing.timeSlicing.resources[0].devices[0]: " in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        pytest.param([], id="no file"),
        pytest.param(["nowhere.yaml"], id="file that is not there"),
        pytest.param([FINE, "-f", "nowhere.yaml"], id="hardware that is not there"),
        pytest.param([FINE, "--node", "n", "--kubeconfig", "nowhere"], id="no kubeconfig"),
    ],
)
def test_wrong_usage(words: list[str]) -> None:
    """What cannot be looked at is 2, so that a pipeline does not take it for a verdict."""
    code, stderr = typed(*words)

    assert code == 2
    assert "nowhere" in stderr or "FILE" in stderr
