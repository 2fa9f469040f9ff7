"""Programs that are run: what they are given, what they say, how long they may take."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpushare.errors import ProgramFailed
from gpushare.host import processes
from gpushare.host.files import HostFiles
from gpushare.host.processes import find_program

SHELL = "/bin/sh"


def script(path: Path, text: str = "exit 0") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{SHELL}\n{text}\n")
    path.chmod(0o755)
    return path


async def test_run() -> None:
    """It reads what it is given, has the environment that it is given and no other, and what it says comes back."""
    words = [SHELL, "-c", 'read -r line; echo "$line $1 $A ${HOME:-nothing}"; echo complains >&2', "name", "word"]

    told = await processes.run(words, environ={"A": "a"}, text="given\n", seconds=10)

    assert told == "given word a nothing\ncomplains"


@pytest.mark.parametrize(
    ("code", "says"),
    [
        pytest.param("echo no device; exit 6", "sh failed with status 6: no device", id="status and words"),
        pytest.param("exit 1", "sh failed with status 1", id="status alone"),
        pytest.param("kill -9 $$", "sh failed with status -9", id="killed"),
    ],
)
async def test_failure(code: str, says: str) -> None:
    """Which program, how it ended, and its own words."""
    with pytest.raises(ProgramFailed) as caught:
        await processes.run([SHELL, "-c", code], environ={}, seconds=10)

    assert (str(caught.value), caught.value.hangs) == (says, False)


async def test_cannot_be_started(tmp_path: Path) -> None:
    """A file that is no program is a failure like any other."""
    (tmp_path / "x").write_text("")

    with pytest.raises(ProgramFailed, match="x cannot be started: Permission denied"):
        await processes.run([str(tmp_path / "x")], environ={}, seconds=10)


async def test_takes_too_long(tmp_path: Path) -> None:
    """It is killed with everything that it started, and that is said."""
    code = f"sleep 60 & echo $! > {tmp_path}/pid; wait"

    with pytest.raises(ProgramFailed, match="sh does not answer within") as caught:
        await processes.run([SHELL, "-c", code], environ={}, seconds=0.5)

    assert caught.value.hangs
    assert await processes.wait_for_end(int((tmp_path / "pid").read_text()), "sleep", 10)


async def test_cannot_be_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that hangs in the driver dies whenever the kernel lets it; nobody waits for that."""
    monkeypatch.setattr(processes, "kill", lambda _: None)
    monkeypatch.setattr(processes, "DEATH_SECONDS", 0.1)
    process = await asyncio.create_subprocess_exec("/bin/sleep", "60")

    with pytest.raises(ProgramFailed, match="sleep does not answer within"):
        await processes._finish(process, "sleep", 0.1)

    assert process.returncode is None
    process.kill()
    await process.wait()


async def test_leaves_a_daemon_behind() -> None:
    """Waits for the program, not for the daemon that keeps its output open."""
    argument = f"62.{os.getpid()}"
    code = f"setsid sleep {argument} &"

    await processes.run([SHELL, "-c", code], environ=dict(os.environ), seconds=10)

    pid = await _pid_of(argument)
    assert processes.is_alive(pid, "sleep")
    processes.kill(pid)
    assert await processes.wait_for_end(pid, "sleep", 10)
    processes.kill(pid)


async def test_cancelled() -> None:
    """Nothing goes on when nobody waits for it any more."""
    argument = f"61.{os.getpid()}"
    task = asyncio.create_task(processes.run([SHELL, "-c", f"exec sleep {argument}"], environ={}, seconds=60))
    found = await _pid_of(argument)

    task.cancel()
    await asyncio.wait([task])

    assert not processes.is_alive(found, "sleep")


async def _pid_of(argument: str) -> int:
    """Of the `sleep` with this argument, which nobody else's has."""
    async with asyncio.timeout(60):
        while (found := _sleeping(argument)) is None:  # noqa: ASYNC110 - processes have no event
            await asyncio.sleep(0.02)
    return found


def _sleeping(argument: str) -> int | None:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes() == f"sleep\0{argument}\0".encode():
                return int(path.parent.name)
    return None


async def test_waits_no_longer_than_told() -> None:
    """What does not end is still there afterwards."""
    assert not await processes.wait_for_end(os.getpid(), _own_name(), 0.1)


def _own_name() -> str:
    return Path("/proc/self/comm").read_text().strip()


def test_alive() -> None:
    """Only under its own name, and not once it has ended, whether or not its parent has noticed."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    name = Path(f"/proc/{process.pid}/comm").read_text().strip()
    assert processes.is_alive(process.pid, name)
    assert not processes.is_alive(process.pid, "another")

    os.kill(process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not processes.is_alive(process.pid, name)

    process.communicate()
    assert not processes.is_alive(process.pid, name)


def test_find_on_path(tmp_path: Path) -> None:
    """Folders in order; what cannot be run, and empty names of folders, are passed over."""
    (tmp_path / "a/tool").parent.mkdir()
    (tmp_path / "a/tool").write_text("text")
    script(tmp_path / "b/tool")
    script(tmp_path / "c/tool")

    assert find_program("tool", HostFiles(tmp_path), ":/a:/none:/b:/c", "/driver-root").path == str(tmp_path / "b/tool")


def test_find_without_a_path(tmp_path: Path) -> None:
    """Without PATH, where programs usually are."""
    script(tmp_path / "usr/bin/tool")

    assert find_program("tool", HostFiles(tmp_path), "", "/driver-root").path == str(tmp_path / "usr/bin/tool")


def test_find_below_the_driver_root(tmp_path: Path) -> None:
    """With the way to the libraries that lie there too."""
    script(tmp_path / "driver-root/usr/bin/tool")
    (tmp_path / "driver-root/usr/lib64").mkdir()

    found = find_program("tool", HostFiles(tmp_path), "/usr/bin", "/driver-root")

    assert found.path == str(tmp_path / "driver-root/usr/bin/tool")
    assert found.environ == {"LD_LIBRARY_PATH": str(tmp_path / "driver-root/usr/lib64")}


def test_find_nothing(tmp_path: Path) -> None:
    """Says where it looked, and what may be the matter."""
    with pytest.raises(ProgramFailed, match="tool is neither on PATH nor below /driver-root; is the NVIDIA driver"):
        find_program("tool", HostFiles(tmp_path), "", "/driver-root")
