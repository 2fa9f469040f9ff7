"""One run of one container: a program of ours in this process, or something that only seems to run."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from gpushare import names
from gpushare.domain.manifests import Manifest
from gpushare.sandbox.node import logs, statuses, transcripts, volumes
from gpushare.sandbox.node.logs import Output
from gpushare.sandbox.node.services import Services
from gpushare.sandbox.node.specs import Invocation, Program
from gpushare.serving import closing
from gpushare.sharing.responses import ContainerAnswer

SIGTERM_CODE = 143
SIGKILL_CODE = 137


def is_ours(container: dict[str, Any]) -> bool:
    """Whether the container's image is this project's, so that its program runs for real."""
    return statuses.image_name(container.get("image") or "") == names.IMAGE


def words_of(command: Sequence[str], args: Sequence[str]) -> tuple[str, ...]:
    """What our image runs: the name of the program and its arguments, without the name of the executable."""
    return (*command[1:], *args)


def seconds_of(
    pod: Manifest, container: dict[str, Any], words: Sequence[str], *, init: bool, run: float
) -> float | None:
    """How long a container runs that only seems to; None: until it is stopped."""
    if init:
        return None if container.get("restartPolicy") == "Always" else 0.0
    owners = pod["metadata"].get("ownerReferences") or ()
    ends = any(owner["kind"] == "Job" for owner in owners) or transcripts.is_vector_add(container["image"], words)
    if not ends or pod["spec"].get("restartPolicy", "Always") == "Always":
        return None
    command, *rest = words or ("",)
    return float(rest[0]) if command == "sleep" and rest and rest[0].isdecimal() else run


class Halt:
    """Asks a run to end: what a SIGTERM is to a process, and the SIGKILL that follows when its time is over."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()
        self._over = asyncio.Event()

    def ask(self, grace: float) -> None:
        """Ends the run within `grace` seconds, or sooner where that was asked before."""
        self._asked.set()
        asyncio.get_running_loop().call_later(grace, self._over.set)

    @property
    def is_asked(self) -> bool:
        """Whether the run should end."""
        return self._asked.is_set()

    async def wait(self, seconds: float | None = None) -> bool:
        """Waits at most that long; whether the run should end."""
        try:
            async with asyncio.timeout(seconds):
                await self._asked.wait()
        except TimeoutError:
            return False
        return True

    async def wait_until_over(self) -> None:
        """Returns when the time that the run had left is over."""
        await self._over.wait()


async def seem_to_run(
    answer: ContainerAnswer, image: str, words: Sequence[str], seconds: float | None, halt: Halt
) -> int:
    """Waits, and returns the exit code."""
    if await halt.wait(seconds):
        return SIGTERM_CODE
    # The sample says in its output that it found no GPU, and fails.
    failed = transcripts.is_vector_add(image, words) and not transcripts.has_devices(answer)
    return 1 if failed else 0


async def run_program(program: Program, invocation: Invocation, halt: Halt, output: Output) -> int:
    """Runs one of our programs to its end, and returns the exit code."""
    task = asyncio.create_task(_exit_code_of(program(invocation), invocation, output))
    try:
        await _first_of(task, halt.wait())
        if not task.done():
            invocation.stop.set()
            await _first_of(task, halt.wait_until_over())
    finally:
        # Also when this run is cancelled: no program outlives its container.
        if not task.done():
            task.cancel()
            await closing.finish(asyncio.wait({task}))
    return SIGKILL_CODE if task.cancelled() else task.result()


async def _first_of(task: asyncio.Task[int], other: Coroutine[None, None, object]) -> None:
    """Waits for either; the task goes on, the other does not."""
    waiting = asyncio.create_task(other)
    try:
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()


async def _exit_code_of(program: Awaitable[int], invocation: Invocation, output: Output) -> int:
    try:
        return await program
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except Exception:
        # A process that ends with a traceback; the trace is in its output, as it would be.
        invocation.log.exception("unhandled exception")
        return 1
    finally:
        output.end()


def build_invocation(
    services: Services, root: Path, name: str, words: Sequence[str], environ: dict[str, str], output: Output
) -> Invocation:
    """What a program gets to see."""
    return Invocation(
        argv=tuple(words[1:]),
        environ=environ,
        root=root,
        node=services.node,
        log=logs.build_logger(name, output),
        stop=asyncio.Event(),
    )


def prepare_root(services: Services, root: Path, container: dict[str, Any], mounted: dict[str, Path]) -> None:
    """Lays out the file system of a container that runs a program of ours. Raises as `volumes.build_root`."""
    privileged = bool((container.get("securityContext") or {}).get("privileged"))
    mounts = volumes.kernel_mounts(services.folders, privileged=privileged)
    volumes.build_root(root, [*mounts, *volumes.mounts_of(container, mounted)])


def remove_root(root: Path) -> None:
    """Removes what `prepare_root` made; what is mounted stays."""
    shutil.rmtree(root, ignore_errors=True)
