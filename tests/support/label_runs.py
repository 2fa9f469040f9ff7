"""`gpushare labels` on recorded nodes: the arguments that the recorded program had, and the driver's side of the node."""

from __future__ import annotations

import time
from pathlib import Path

from gpushare import names
from support.nvml_library import Stub, write_stub
from support.recorded_cases import Case

_INIT_ERROR = "FAKENVML_INIT_ERROR"
"""How the recorded driver was told to fail."""
_A_MOMENT_AGO = 60
RECORDED_TIME = "<unix-seconds>"


def arguments_of(case: Case, folder: Path) -> list[str]:
    """One shot into the file `labels` of the folder, which gets what else the arguments name."""
    arguments = [
        "--oneshot", "--use-node-feature-api=false", f"--output-file={folder / 'labels'}",
        f"--machine-type-file={folder / 'machine-type'}", *case.body["flags"],
    ]  # fmt: skip
    variation = case.body.get("variation") or []
    if "timestamp" not in variation:
        arguments.append("--no-timestamp")
    if "no-machine-type-file" not in variation:
        (folder / "machine-type").write_text("FAKE-SERVER-1\n")
    if case.text:
        (folder / "config.yaml").write_text(case.text)
        arguments.append(f"--config-file={folder / 'config.yaml'}")
    return arguments


def stub_of(case: Case, folder: Path) -> Stub:
    """The driver of the case."""
    code = case.body["env"].get(_INIT_ERROR)
    return write_stub(folder, case.body["node"] + (f"fail nvmlInitWithFlags {code}\n" if code else ""))


def has_library(case: Case) -> bool:
    """Whether the driver's library is there at all."""
    return "LD_LIBRARY_PATH" not in case.body["env"]


def read_labels(folder: Path) -> dict[str, str] | None:
    """What the run wrote; None: nothing. A current time stands as the recorded ones do."""
    path = folder / "labels"
    if not path.exists():
        return None
    labels = dict(line.split("=", 1) for line in path.read_text().splitlines())
    if abs(int(labels.get(names.LABEL_TIMESTAMP, "0")) - time.time()) < _A_MOMENT_AGO:
        labels[names.LABEL_TIMESTAMP] = RECORDED_TIME
    return labels


def variants_of(case: Case) -> list[dict[str, str] | None]:
    """Every answer that was recorded, one of which is to be given."""
    return case.body.get("variants") or [case.body["labels"]]
