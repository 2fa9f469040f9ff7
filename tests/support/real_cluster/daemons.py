"""The long-running programs of a cluster: started in its namespaces, each with a log, and stopped one by one."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from support.real_cluster.namespaces import Namespaces, child_of

PATIENCE: Final = 20.0
_LAST: Final = 2000
"""Characters of a log that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Daemon:
    """What to start."""

    name: str
    command: tuple[str, ...]
    environ: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Daemons:
    """What runs in the namespaces of a cluster."""

    logs: Path
    _running: dict[str, tuple[subprocess.Popen[str], int]] = field(default_factory=dict)

    def start(self, namespaces: Namespaces, daemon: Daemon) -> None:
        """Starts a program; what it writes goes into its log."""
        with self.logs.joinpath(f"{daemon.name}.log").open("a") as log:
            process = subprocess.Popen(
                namespaces.enter(*daemon.command), stdin=subprocess.DEVNULL, stdout=log, stderr=log, text=True,
                start_new_session=True, env={**os.environ, **daemon.environ},
            )  # fmt: skip
        self._running[daemon.name] = process, child_of(process)

    def stop(self, name: str, number: signal.Signals = signal.SIGTERM) -> None:
        """Stops a program, if it runs, and waits for its end."""
        process, pid = self._running.pop(name, (None, 0))
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.kill(pid, signal.SIGKILL)
            process.wait(PATIENCE)

    def see_off(self) -> None:
        """Waits for all of them, whose namespaces have ended."""
        while self._running:
            process, _ = self._running.popitem()[1]
            process.wait(PATIENCE)

    def check(self) -> None:
        """Raises RuntimeError where one has ended by itself: no waiting helps against that."""
        for name, (process, _) in self._running.items():
            if process.poll() is not None:
                raise RuntimeError(f"{name} ended with {process.returncode}: {self.log_of(name)}")

    def log_of(self, name: str) -> str:
        """The end of a log."""
        return self.logs.joinpath(f"{name}.log").read_text(errors="replace")[-_LAST:]
