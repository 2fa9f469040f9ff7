"""MPS on the machine: NVIDIA's control program, compute modes, and the directories that containers of the shares mount.

`gpushare mps` starts and ends daemons through it; the agent only asks whether they answer.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpushare.errors import ProgramFailed
from gpushare.host import processes, selinux
from gpushare.host.files import HostFiles

ROOT: Final = "/mps"
"""Where the host's MPS directory (`/run/nvidia/mps`) is in our containers, and in those that get shares."""
SHM: Final = "/mps/shm"
"""What becomes `/dev/shm` of the daemon and of its clients, so that they find each other."""
CONTROL: Final = "nvidia-cuda-mps-control"
SMI: Final = "nvidia-smi"
EXCLUSIVE: Final = "EXCLUSIVE_PROCESS"
SHARED: Final = "DEFAULT"
_PID_FILE: Final = "nvidia-cuda-mps-control.pid"
_SELINUX_TYPE: Final = "container_file_t"


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long each thing may take, in seconds."""

    ask: float = 3.0
    tell: float = 10.0
    quit: float = 20.0
    """For clients to finish, after they were asked to."""
    force: float = 5.0
    end: float = 2.0
    """Between the end of a daemon that it announced, and that of its process."""


class MpsMachine:
    """The control daemons of one machine, each known by the resource that it serves."""

    def __init__(
        self,
        files: HostFiles,
        environ: Mapping[str, str],
        find_driver_root: Callable[[], str],
        log: logging.Logger,
        patience: Patience = Patience(),
    ) -> None:
        """Programs are looked for on the `PATH` of `environ`, then below the driver root, wherever that is by then."""
        self._files = files
        self._environ = environ
        self._find_driver_root = find_driver_root
        self._log = log
        self._patience = patience

    async def ask_percentage(self, resource: str) -> float | None:
        """The active thread percentage that the daemon has; None where it answers something else than a number.

        Raises:
            ProgramFailed: no daemon answers.
        """
        answer = await self._control(resource, "get_default_active_thread_percentage", self._patience.ask)
        try:
            return float(answer)
        except ValueError:
            return None

    async def tell(self, resource: str, command: str) -> None:
        """Gives the daemon a command. Raises ProgramFailed when it does not take it."""
        await self._control(resource, command, self._patience.tell)

    async def start(self, resource: str) -> None:
        """Starts the daemon of a resource.

        Raises:
            ProgramFailed: it cannot be started, or its directories cannot be made.
        """
        try:
            self._make_folders(resource)
        except OSError as error:
            raise ProgramFailed(f"{error.filename}: {error.strerror}") from error
        program = self._find(CONTROL)
        # Nothing else than where it listens and writes, as NVIDIA's daemon has it: one that sees CUDA_VISIBLE_DEVICES
        # would number its GPUs differently from NVML.
        environ = {**program.environ, **self._places(resource)}
        await processes.run([program.path, "-d"], environ=environ, seconds=self._patience.tell)

    async def quit(self, resource: str) -> None:
        """Ends the daemon of a resource: asks, insists, kills. Nothing happens where there is none.

        Raises:
            ProgramFailed: it is still there after all of that.
        """
        for command, seconds in (("quit", self._patience.quit), ("quit -t 1", self._patience.force)):
            failure: ProgramFailed | None = None
            try:
                await self._control(resource, command, seconds)
            except ProgramFailed as error:
                failure = error
            pid = self._pid_of(resource)
            if pid is None and not (failure is not None and failure.hangs):
                return
            if pid is not None and await processes.wait_for_end(pid, CONTROL, self._patience.end):
                return
            self._log.warning("MPS daemon does not quit", extra={"resource": resource, "reason": str(failure or "")})
        pid = self._pid_of(resource)
        if pid is None:
            raise ProgramFailed(f"the MPS daemon of {resource} does not quit, and nothing says which process it is")
        self._log.warning("MPS daemon killed", extra={"resource": resource, "pid": pid})
        processes.kill(pid)
        if not await processes.wait_for_end(pid, CONTROL, self._patience.end):
            raise ProgramFailed(f"the MPS daemon of {resource}, process {pid}, cannot be killed")

    async def set_compute_mode(self, uuid: str, mode: str) -> None:
        """Sets the compute mode of one GPU. Raises ProgramFailed."""
        program = self._find(SMI)
        environ = {**self._environ, **program.environ}
        await processes.run([program.path, "-i", uuid, "-c", mode], environ=environ, seconds=self._patience.tell)

    def log_file(self, resource: str) -> Path:
        """Where the daemon of a resource writes what becomes of its clients."""
        return self._folder(resource, "log") / "control.log"

    def mark_started(self, resource: str, *, started: bool) -> None:
        """Leaves the file that NVIDIA's daemon leaves, or removes it together with the logs. Nobody here believes it."""
        folder = self._files.path(f"{ROOT}/{resource}")
        if started:
            _touch(folder / ".started")
            return
        with contextlib.suppress(OSError):
            (folder / ".started").unlink()
        shutil.rmtree(folder / "log", ignore_errors=True)

    def mark_ready(self, *, ready: bool) -> None:
        """The same for the daemons all together."""
        path = self._files.path(f"{ROOT}/.ready")
        if ready:
            with contextlib.suppress(OSError):
                path.parent.mkdir(parents=True, exist_ok=True)
            _touch(path)
        else:
            with contextlib.suppress(OSError):
                path.unlink()

    async def _control(self, resource: str, command: str, seconds: float) -> str:
        program = self._find(CONTROL)
        environ = {**self._environ, **program.environ, **self._places(resource)}
        return await processes.run([program.path], environ=environ, text=f"{command}\n", seconds=seconds)

    def _find(self, name: str) -> processes.Program:
        # Each time: the driver may come, or be replaced, while we run.
        return processes.find_program(name, self._files, self._environ.get("PATH", ""), self._find_driver_root())

    def _places(self, resource: str) -> Mapping[str, str]:
        return {
            "CUDA_MPS_PIPE_DIRECTORY": str(self._folder(resource, "pipe")),
            "CUDA_MPS_LOG_DIRECTORY": str(self._folder(resource, "log")),
        }

    def _folder(self, resource: str, name: str) -> Path:
        return self._files.path(f"{ROOT}/{resource}/{name}")

    def _make_folders(self, resource: str) -> None:
        for name in ("pipe", "log"):
            folder = self._folder(resource, name)
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o755)
        if selinux.is_enabled(self._files):
            selinux.set_type(self._folder(resource, "pipe"), _SELINUX_TYPE)

    def _pid_of(self, resource: str) -> int | None:
        """The process of the daemon; None where it has none that is alive, or did not write it down."""
        text = self._files.read_text(str(f"{ROOT}/{resource}/pipe/{_PID_FILE}")) or ""
        pid = int(text) if text.strip().isdecimal() else None
        return pid if pid is not None and processes.is_alive(pid, CONTROL) else None


def _touch(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.touch()
