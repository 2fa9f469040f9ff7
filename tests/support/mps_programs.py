"""Stand-ins for `nvidia-smi` and `nvidia-cuda-mps-control` that record what they were told, and that can be told to fail."""

from __future__ import annotations

import os
from pathlib import Path

from gpushare.host import processes
from gpushare.host.mps import CONTROL

_SMI = """#!/bin/sh
record={record}
echo "$*" >> "$record/smi-commands"
[ ! -e "$record/smi-fails" ] || {{ echo "No devices were found"; exit 6; }}
"""

_CONTROL = """#!/bin/sh
record={record}
pipe="$CUDA_MPS_PIPE_DIRECTORY"
pid_file="$pipe/nvidia-cuda-mps-control.pid"
lives() {{ grep -q . "/proc/$(cat "$pid_file" 2> /dev/null || echo none)/cmdline" 2> /dev/null; }}
case "$1" in
-d)
    env | sort > "$record/environ"
    [ ! -e "$record/start-fails" ] || {{ echo "cannot create log file"; exit 1; }}
    ! lives || {{ echo "An instance of this daemon is already running"; exit 1; }}
    rm -f "$pipe/told-to-quit" "$pipe/percentage" "$pid_file"
    setsid "$0" as-daemon < /dev/null > /dev/null 2>&1 &
    while [ ! -e "$pid_file" ]; do sleep 0.01; done
    exit ;;
as-daemon)
    echo $$ > "$pid_file"
    while [ ! -e "$pipe/told-to-quit" ]; do sleep 0.05; done
    rm "$pid_file"
    exit ;;
esac
read -r command
echo "$command" >> "$record/control-commands"
[ ! -e "$record/hangs" ] || exec sleep 60
lives || {{
    echo "Cannot find MPS control daemon process"
    exit 1
}}
case "$command" in
get_default_active_thread_percentage) echo "$(cat "$pipe/percentage" 2> /dev/null || echo 100).0" ;;
set_default_active_thread_percentage*) echo "${{command##* }}" > "$pipe/percentage" ;;
quit*)
    [ ! -e "$record/stubborn" ] || exec sleep 60
    touch "$pipe/told-to-quit"
    while [ -e "$pid_file" ]; do sleep 0.01; done ;;
esac
"""

_RECORDER = """#!/bin/sh
if [ "$1" = -d ]; then exit; fi
read -r command
echo "$command" >> {record}/control-commands
"""


class MpsPrograms:
    """The two programs in one directory, with a daemon that is a process of its own."""

    def __init__(self, folder: Path, *, record: Path | None = None, plain: bool = False) -> None:
        """`record`: where they write down what they are told. `plain`: the control program only records and succeeds."""
        self.folder = folder
        self.record = record or folder
        folder.mkdir(parents=True, exist_ok=True)
        self.record.mkdir(parents=True, exist_ok=True)
        self._write("nvidia-smi", _SMI)
        self._write("nvidia-cuda-mps-control", _RECORDER if plain else _CONTROL)

    @property
    def environ(self) -> dict[str, str]:
        """What makes a process find them. The shell that they are written in needs the rest."""
        return {"PATH": f"{self.folder}:{os.environ['PATH']}"}

    @property
    def control_commands(self) -> list[str]:
        return self._lines("control-commands")

    @property
    def smi_commands(self) -> list[str]:
        return self._lines("smi-commands")

    @property
    def told(self) -> list[str]:
        """Commands that change something, since the last `forget`."""
        return [command for command in self.control_commands if not command.startswith("get_")]

    def forget(self) -> None:
        """Starts afresh with what is recorded."""
        for name in ("control-commands", "smi-commands"):
            (self.record / name).unlink(missing_ok=True)

    def now(self, trouble: str) -> None:
        """From now on: `smi-fails`, `start-fails`, `hangs` (each command), or `stubborn` (it does not quit)."""
        (self.record / trouble).touch()

    def no_more(self, trouble: str) -> None:
        (self.record / trouble).unlink()

    def _lines(self, name: str) -> list[str]:
        path = self.record / name
        return path.read_text().splitlines() if path.exists() else []

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.write_text(text.format(record=self.record))
        path.chmod(0o755)


def daemon_pid(root: Path, resource: str) -> int | None:
    """The process of a stand-in's daemon, by what it wrote down."""
    path = root / "mps" / resource / "pipe/nvidia-cuda-mps-control.pid"
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def kill_daemon(root: Path, resource: str) -> None:
    """As the kernel does when memory is short: without a word. Nothing happens where no such daemon lives."""
    pid = daemon_pid(root, resource)
    if pid is not None and processes.is_alive(pid, CONTROL):
        processes.kill(pid)
