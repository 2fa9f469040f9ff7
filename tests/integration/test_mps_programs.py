"""MPS's programs as they are run: what they are told, what they see, and what happens when they do not listen."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gpushare.errors import ProgramFailed
from gpushare.host import processes
from gpushare.host.files import HostFiles
from gpushare.host.mps import CONTROL, MpsMachine, Patience
from support.mps_nodes import HURRY, PATIENCE
from support.mps_programs import MpsPrograms, daemon_pid, kill_daemon

GPU = "nvidia.com/gpu"


@pytest.fixture
def programs(tmp_path: Path) -> MpsPrograms:
    return MpsPrograms(tmp_path / "bin")


@pytest.fixture
async def machine(tmp_path: Path, programs: MpsPrograms) -> AsyncIterator[MpsMachine]:
    yield machine_of(tmp_path, programs, PATIENCE)
    kill_daemon(tmp_path, GPU)


def machine_of(root: Path, programs: MpsPrograms, patience: Patience) -> MpsMachine:
    return MpsMachine(HostFiles(root), programs.environ, lambda: "/driver-root", logging.getLogger("mps"), patience)


async def test_start(tmp_path: Path, machine: MpsMachine, programs: MpsPrograms) -> None:
    """The daemon sees where to listen and to write, and nothing else, least of all CUDA_VISIBLE_DEVICES."""
    os.environ["CUDA_VISIBLE_DEVICES"] = "1"
    await machine.start(GPU)
    del os.environ["CUDA_VISIBLE_DEVICES"]

    folder = tmp_path / "mps" / GPU
    environ = (programs.record / "environ").read_text().splitlines()
    assert [line for line in environ if not line.startswith(("PWD=", "OLDPWD=", "SHLVL=", "_="))] == [
        f"CUDA_MPS_LOG_DIRECTORY={folder}/log",
        f"CUDA_MPS_PIPE_DIRECTORY={folder}/pipe",
    ]
    assert {path.name: oct(path.stat().st_mode & 0o777) for path in folder.iterdir()} == {
        "log": "0o755",
        "pipe": "0o755",
    }


async def test_ask_and_tell(machine: MpsMachine, programs: MpsPrograms) -> None:
    """One command a run; the answer is a number."""
    await machine.start(GPU)
    assert await machine.ask_percentage(GPU) == 100

    await machine.tell(GPU, "set_default_active_thread_percentage 25")

    assert await machine.ask_percentage(GPU) == 25
    assert programs.told == ["set_default_active_thread_percentage 25"]


async def test_answers_no_number(tmp_path: Path) -> None:
    """A daemon that answers is a daemon, whatever it says."""
    programs = MpsPrograms(tmp_path / "bin", plain=True)
    machine = MpsMachine(HostFiles(tmp_path), programs.environ, lambda: "", logging.getLogger("mps"))

    assert await machine.ask_percentage(GPU) is None


async def test_no_daemon(machine: MpsMachine) -> None:
    """In the words of the control program."""
    with pytest.raises(ProgramFailed, match="status 1: Cannot find MPS control daemon process"):
        await machine.ask_percentage(GPU)

    await machine.quit(GPU)


async def test_no_program(tmp_path: Path) -> None:
    """A node whose driver is not there yet."""
    machine = MpsMachine(HostFiles(tmp_path), {"PATH": "/none"}, lambda: "/driver-root", logging.getLogger("mps"))

    with pytest.raises(ProgramFailed, match="nvidia-cuda-mps-control is neither on PATH nor below /driver-root"):
        await machine.ask_percentage(GPU)


async def test_driver_that_is_installed_later(tmp_path: Path) -> None:
    """Where its programs are is looked for each time."""
    roots = ["/driver-root"]
    machine = MpsMachine(HostFiles(tmp_path), {"PATH": "/none"}, lambda: roots[-1], logging.getLogger("mps"))
    with pytest.raises(ProgramFailed, match="nor below /driver-root"):
        await machine.ask_percentage(GPU)

    MpsPrograms(tmp_path / "host/usr/bin", plain=True)
    roots.append("/host")

    assert await machine.ask_percentage(GPU) is None


async def test_start_fails(tmp_path: Path, machine: MpsMachine, programs: MpsPrograms) -> None:
    """Because of the program, or of the directory."""
    programs.now("start-fails")
    with pytest.raises(ProgramFailed, match="cannot create log file"):
        await machine.start(GPU)

    (tmp_path / "mps/nvidia.com").rename(tmp_path / "elsewhere")
    (tmp_path / "mps/nvidia.com").touch()
    with pytest.raises(ProgramFailed, match=r"mps/nvidia\.com/gpu.*: Not a directory"):
        await machine.start(GPU)


async def test_quit(tmp_path: Path, machine: MpsMachine, programs: MpsPrograms) -> None:
    """Asked once; it is gone afterwards."""
    await machine.start(GPU)
    pid = daemon_pid(tmp_path, GPU)
    assert pid is not None

    await machine.quit(GPU)

    # It has taken away its number, which is the last that it does.
    assert await processes.wait_for_end(pid, CONTROL, PATIENCE.end)
    assert programs.told == ["quit"]


async def test_does_not_quit(
    tmp_path: Path, machine: MpsMachine, programs: MpsPrograms, caplog: pytest.LogCaptureFixture
) -> None:
    """Asked, pressed, killed; each is said."""
    await machine.start(GPU)
    pid = daemon_pid(tmp_path, GPU)
    assert pid is not None
    programs.now("stubborn")

    await machine_of(tmp_path, programs, HURRY).quit(GPU)

    assert not processes.is_alive(pid, CONTROL)
    assert programs.told == ["quit", "quit -t 1"]
    assert caplog.messages == ["MPS daemon does not quit", "MPS daemon does not quit", "MPS daemon killed"]


async def test_cannot_be_ended(tmp_path: Path, machine: MpsMachine, programs: MpsPrograms) -> None:
    """Without its number there is nothing left to be done; a stranger's number is not taken for it."""
    await machine.start(GPU)
    pid = daemon_pid(tmp_path, GPU)
    assert pid is not None
    programs.now("stubborn")
    (tmp_path / "mps" / GPU / "pipe/nvidia-cuda-mps-control.pid").write_text(f"{os.getpid()}\n")

    with pytest.raises(ProgramFailed, match="does not quit, and nothing says which process it is"):
        await machine_of(tmp_path, programs, HURRY).quit(GPU)

    assert processes.is_alive(pid, CONTROL)
    processes.kill(pid)


async def test_compute_mode(machine: MpsMachine, programs: MpsPrograms) -> None:
    """By UUID; a GPU that is gone is a failure in the program's words."""
    await machine.set_compute_mode("GPU-1", "EXCLUSIVE_PROCESS")
    assert programs.smi_commands == ["-i GPU-1 -c EXCLUSIVE_PROCESS"]

    programs.now("smi-fails")
    with pytest.raises(ProgramFailed, match="nvidia-smi failed with status 6: No devices were found"):
        await machine.set_compute_mode("GPU-1", "DEFAULT")


async def test_marks(tmp_path: Path, machine: MpsMachine) -> None:
    """The files that NVIDIA's daemon leaves, and those that it takes away."""
    await machine.start(GPU)
    machine.mark_started(GPU, started=True)
    machine.mark_ready(ready=True)
    folder = tmp_path / "mps"
    assert (folder / ".ready").exists()
    assert (folder / GPU / ".started").exists()

    machine.mark_started(GPU, started=False)
    machine.mark_ready(ready=False)
    machine.mark_ready(ready=False)
    assert [path.name for path in folder.iterdir()] == ["nvidia.com"]
    assert [path.name for path in (folder / GPU).iterdir()] == ["pipe"]


async def test_selinux(tmp_path: Path, machine: MpsMachine) -> None:
    """Containers of other pods open the pipe."""
    try:
        os.setxattr(tmp_path, "security.selinux", b"u:r:t:s0\0")
    except OSError as error:
        pytest.skip(f"labels cannot be written here: {error.strerror}")
    (tmp_path / "sys/fs/selinux").mkdir(parents=True)
    (tmp_path / "sys/fs/selinux/enforce").touch()

    await machine.start(GPU)

    assert b":container_file_t:" in os.getxattr(tmp_path / "mps" / GPU / "pipe", "security.selinux")
