"""What NVIDIA's MPS control daemon told its programs on three nodes, and the files that it left: ours does the same."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpushare.mps import app
from support.described_nodes import build_nvml
from support.mps_nodes import mps, until
from support.mps_programs import MpsPrograms
from support.recorded_cases import DATA

UUID = re.compile(r"GPU-[0-9a-f-]{36}")


@dataclass(frozen=True)
class Recorded:
    """One node: what was seen while the daemon ran, and after its end."""

    node: str
    replicas: int
    smi: list[str]
    control: list[str]
    files: list[str]
    control_in_the_end: Counter[str]
    smi_in_the_end: Counter[str]
    files_in_the_end: list[str]


def read_recorded() -> list[Recorded]:
    text = (DATA / "mps/mps-daemon.txt").read_text()
    found = []
    for case in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        head, *sections = re.split(r"^# .*\n", case, flags=re.MULTILINE)
        node, replicas = head.split()
        smi, control, files, control_all, smi_all, files_all = (section.splitlines() for section in sections)
        found.append(
            Recorded(
                node=node,
                replicas=int(replicas.removeprefix("replicas=")),
                smi=smi,
                control=control,
                files=files,
                control_in_the_end=counted(control_all),
                smi_in_the_end=counted(smi_all),
                files_in_the_end=files_all,
            )
        )
    return found


def counted(lines: list[str]) -> Counter[str]:
    """Lines of `uniq -c`."""
    return Counter({line.split(maxsplit=1)[1]: int(line.split(maxsplit=1)[0]) for line in lines})


def files_below(folder: Path) -> list[str]:
    """As `find . | sort` prints them."""
    return [".", *sorted(f"./{path.relative_to(folder)}" for path in folder.rglob("*"))]


@pytest.mark.parametrize("recorded", [pytest.param(case, id=case.node) for case in read_recorded()])
async def test_the_daemon_is_told_as_recorded(tmp_path: Path, recorded: Recorded) -> None:
    """Compute modes, commands, directories: while it runs, and after it was ended."""
    folder = tmp_path / "mps"
    programs = MpsPrograms(tmp_path / "bin", record=folder, plain=True)
    (tmp_path / "config.yaml").write_text(mps(recorded.replicas))
    stop = asyncio.Event()
    nvml = build_nvml((DATA / f"nodes/{recorded.node}.conf").read_text())
    running = asyncio.create_task(
        app.run(
            ["--config-file=/config.yaml"],
            programs.environ,
            root=tmp_path,
            nvml=nvml,
            log=logging.getLogger("mps"),
            stop=stop,
        )
    )
    await until((folder / ".ready").exists)

    assert sorted(programs.smi_commands) == recorded.smi
    assert sorted(programs.control_commands) == recorded.control
    assert files_below(folder) == recorded.files

    stop.set()
    assert await running == 0
    assert Counter(programs.control_commands) == recorded.control_in_the_end
    assert Counter(UUID.sub("UUID", command) for command in programs.smi_commands) == recorded.smi_in_the_end
    assert files_below(folder) == recorded.files_in_the_end
