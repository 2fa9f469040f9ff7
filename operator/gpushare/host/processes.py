"""Programs of the machine, run with a time limit. For what NVIDIA offers as a program only: MPS and compute modes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from gpushare.errors import ProgramFailed
from gpushare.host.files import HostFiles

USUAL_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_BELOW_DRIVER_ROOT: Final = ("usr/bin", "usr/sbin", "bin", "sbin")
_LIBRARY_FOLDERS: Final = ("usr/lib64", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "lib64", "lib")
_MOST_OUTPUT: Final = 4096
_POLL_SECONDS: Final = 0.05
DEATH_SECONDS: Final = 1.0
"""How long a program that was killed is waited for: one that hangs in the driver dies only when that lets go of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Where a program is, and what it needs beside its arguments."""

    path: str
    environ: Mapping[str, str] = field(default_factory=dict)
    """Where its libraries are, when they are not where the loader looks."""


def find_program(name: str, files: HostFiles, search: str, driver_root: str) -> Program:
    """Looks on a search path (that of `PATH`), then below the driver root as this container sees it.

    Raises:
        ProgramFailed: it is in neither place.
    """
    for folder in filter(None, (search or USUAL_PATH).split(":")):
        if _is_executable(path := files.path(f"{folder}/{name}")):
            return Program(path=str(path))
    root = files.path(driver_root)
    for folder in _BELOW_DRIVER_ROOT:
        if _is_executable(path := root / folder / name):
            libraries = ":".join(str(root / folder) for folder in _LIBRARY_FOLDERS if (root / folder).is_dir())
            return Program(path=str(path), environ={"LD_LIBRARY_PATH": libraries} if libraries else {})
    raise ProgramFailed(f"{name} is neither on PATH nor below {driver_root}; is the NVIDIA driver installed?")


async def run(words: Sequence[str], *, environ: Mapping[str, str], text: str = "", seconds: float) -> str:
    """Runs a program to its end and returns what it wrote, the beginning of it.

    Args:
        words: its path and its arguments.
        environ: all of its environment.
        text: what it reads.
        seconds: after which it is killed.

    Raises:
        ProgramFailed: it cannot be started, ends with another status than 0, or takes too long.
    """
    name = Path(words[0]).name
    # Files rather than pipes, which a daemon that the program leaves behind would hold open; in memory, since the root
    # file system of our containers is read-only.
    with _memory_file() as output, _memory_file() as given:
        given.write(text.encode())
        given.seek(0)
        try:
            process = await asyncio.create_subprocess_exec(
                *words, stdin=given, stdout=output, stderr=output, env=dict(environ), start_new_session=True
            )
        except OSError as error:
            raise ProgramFailed(f"{name} cannot be started: {error.strerror}") from error
        await _finish(process, name, seconds)
        told = _beginning(output)
        if process.returncode:
            raise ProgramFailed(f"{name} failed with status {process.returncode}" + (f": {told}" if told else ""))
        return told


def is_alive(pid: int, name: str) -> bool:
    """Whether the process exists and runs the program of that name: a number may have gone to another one."""
    try:
        running = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").rstrip("\n")
    except OSError:
        return False
    # The kernel keeps 15 characters. One that has ended and waits for its parent keeps its name.
    return running == name[:15] and _state_of(pid) != "Z"


async def wait_for_end(pid: int, name: str, seconds: float) -> bool:
    """Waits at most that long for the end of a process that is no child of this one; whether it came."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while is_alive(pid, name):  # noqa: ASYNC110 - nobody tells of the end of a stranger
                await asyncio.sleep(_POLL_SECONDS)
    return not is_alive(pid, name)


def kill(pid: int) -> None:
    """Kills a process; with its whole group where it leads one, as daemons do. Nothing happens where it is gone."""
    with contextlib.suppress(ProcessLookupError):
        if os.getpgid(pid) == pid:
            os.killpg(pid, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGKILL)


async def _finish(process: asyncio.subprocess.Process, name: str, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await process.wait()
    except TimeoutError:
        raise ProgramFailed(f"{name} does not answer within {seconds:g} s", hangs=True) from None
    finally:
        # Also when we are cancelled: what was started does not go on by itself.
        if process.returncode is None:
            kill(process.pid)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DEATH_SECONDS):
                    await process.wait()


def _memory_file() -> IO[bytes]:
    return os.fdopen(os.memfd_create("gpushare"), "w+b")


def _is_executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _beginning(output: IO[bytes]) -> str:
    output.seek(0)
    return output.read(_MOST_OUTPUT).decode(errors="replace").strip()


def _state_of(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[0]
