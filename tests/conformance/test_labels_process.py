"""The recorded cases of GPU feature discovery put to `gpushare labels`, over a shared library in the place of the driver's.

Once as the command that people run, a process that knows nothing of tests; it sees this machine's /sys, so that labels of PCI
devices are left out of the comparison. Once in this process with a root of its own, where nothing is.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pynvml
import pytest

from gpushare.labelling import app
from gpushare.nvml.real import RealNvml
from gpushare.serving.processes import Signals
from support.label_runs import arguments_of, has_library, read_labels, stub_of, variants_of
from support.nvml_library import LIBRARY, plugged_in
from support.recorded_cases import Case, read_cases

CASES = [pytest.param(case, id=case.name) for case in read_cases("labels")]
OF_PCI_DEVICES = ("nvidia.com/gpu.mode", "nvidia.com/vgpu.")


@pytest.mark.parametrize("case", CASES)
def test_the_command(case: Case, tmp_path: Path) -> None:
    """The same exit status, and the same file or none."""
    environ = os.environ | stub_of(case, tmp_path).environ
    if not has_library(case):
        # An empty folder would leave the loader to find the library of a machine that has one.
        (tmp_path / LIBRARY).write_text("no library\n")
        environ["LD_LIBRARY_PATH"] = str(tmp_path)
    command = [sys.executable, "-m", "gpushare", "labels", *arguments_of(case, tmp_path)]

    ended = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=120)

    assert ended.returncode == case.body["exit_code"], ended.stderr
    assert told(read_labels(tmp_path)) in [told(variant) for variant in variants_of(case)]


def told(labels: dict[str, str] | None) -> dict[str, str] | None:
    """Without what the machine that runs the test has a say in."""
    return labels and {key: value for key, value in labels.items() if not key.startswith(OF_PCI_DEVICES)}


@pytest.mark.parametrize("case", CASES)
async def test_below_a_root(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with a described host: every label, those of PCI devices too."""
    case.machine.write(tmp_path / "root")
    with plugged_in(stub_of(case, tmp_path)):
        if not has_library(case):
            monkeypatch.setattr(pynvml, "nvmlLib", None)
            monkeypatch.setattr(pynvml, "CDLL", no_library)
        status = await app.run(
            relative_arguments_of(case, tmp_path),
            {},
            root=tmp_path / "root",
            nvml=RealNvml(),
            log=logging.getLogger("labels"),
            signals=Signals(),
        )

    assert status == case.body["exit_code"]
    assert read_labels(tmp_path) in variants_of(case)


def relative_arguments_of(case: Case, folder: Path) -> list[str]:
    """Relative paths are the test's own; those from the top are the described host's."""
    here = os.path.relpath(folder)
    return [argument.replace(f"={folder}", f"={here}") for argument in arguments_of(case, folder)]


def no_library(name: str) -> None:
    raise OSError(f"{name}: not there")
