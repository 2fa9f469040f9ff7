"""Suites of kubectl commands: run one after another against a server, answers masked so that two servers can be compared."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

COMMAND_SECONDS = 120
LINES, WIDTH = 200, 600
"""How much of an answer is compared."""

_MASKS = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", "TIME"),
        (r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "DATE"),
        (r'(resourceVersion\\*"?:\s*)\\*"?\d+\\*"?', r"\1RV"),
        (r"https?://127\.0\.0\.1:\d+", "URL"),
        (r"\b10\.(244|96|0)\.\d+\.\d+\b", "IP"),
        (r"/dev/fd/\d+", "/dev/fd/N"),
        (r"(/[\w.-]+)+/(LIVE|MERGED)-\d+/", r"\2/"),
        (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "TOKEN"),
        (r"X509SHA256=[0-9a-f]+", "X509SHA256=HASH"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d{4}", "TIME"),
        (r"\bdefault-token|kube-api-access-[a-z0-9]{5}\b", "kube-api-access-SUFFIX"),
        (r'"continue":"[^"]+"', '"continue":"TOKEN"'),
        (r"Resource Version:\s+\d+", "Resource Version: RV"),
        (r"\b[a-z0-9]{8,10}-[a-z0-9]{5}\b", "HASH-SUFFIX"),
        (r"(controller-revision-hash[=:]\s*|pod-template-hash[=:]\s*)[a-z0-9]+", r"\1HASH"),
        (r"\b(dp|two|gg|web|cluster-policy|cp2|x)-[a-z0-9]{5}\b", r"\1-SUFFIX"),
        (r"\b(dp|two|time-slicing-verification|web)-[a-f0-9]{8,10}\b", r"\1-HASH"),
        (r"\b(too-big|p2|w1|bindme|gpu-node-\d|cluster-policy)\.[0-9a-f]{16}\b", r"\1.EVENT"),
        (r"\b(\d+[dhms]){1,2}\b( ago)?", "AGE"),
        (r"<unknown>|<invalid>", "AGE"),
        (r"uid: \w+", "uid: UID"),
        (r"[ \t]+", " "),
        (r" +\n", "\n"),
        (r"\b(\d{3,6})\b(?= ?(, current| \()|\). The object)", "N"),
    )
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What one command did."""

    exit: int
    text: str


def load(path: Path, replaced: Mapping[str, str]) -> list[dict[str, Any]]:
    """The steps of a suite: commands with an id, files to write, preparations, and what to wait for."""
    text = path.read_text()
    for old, new in replaced.items():
        text = text.replace(old, new)
    steps: list[dict[str, Any]] = yaml.safe_load(text)
    return steps


async def run(steps: list[dict[str, Any]], *, kubectl: str, kubeconfig: Path, folder: Path) -> dict[str, Answer]:
    """Runs a suite in a new folder; the answers by the ids of the commands."""
    programs = folder / "bin"
    programs.mkdir(parents=True)
    (programs / "kubectl").symlink_to(kubectl)
    environ = {
        **os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "KUBECONFIG": str(kubeconfig),
        "HOME": str(kubeconfig.parent),
    }  # fmt: skip
    shell = _Shell(folder, environ)
    answers = {}
    for step in steps:
        if "file" in step:
            file = folder / step["file"]
            file.parent.mkdir(exist_ok=True)
            file.write_text(step["content"])
        elif "until" in step:
            await shell.wait(step["until"], step["seconds"])
        elif "prepare" in step:
            await shell.run(step["prepare"])
        else:
            answers[step["id"]] = await shell.run(step["run"])
    return answers


@dataclass(frozen=True, slots=True)
class _Shell:
    folder: Path
    environ: Mapping[str, str]

    async def run(self, line: str) -> Answer:
        process = await asyncio.create_subprocess_exec(
            "timeout", str(COMMAND_SECONDS), "bash", "-c", line, cwd=self.folder, env=self.environ,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, err = await process.communicate()
        text = out.decode(errors="replace") + (f"\n--stderr\n{err.decode(errors='replace')}" if err else "")
        assert process.returncode is not None
        return Answer(process.returncode, mask(text))

    async def wait(self, line: str, seconds: float) -> None:
        # Both servers are given time to settle; what does not come about shows in the next command.
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while (await self.run(line)).exit and loop.time() < end:  # noqa: ASYNC110 - kubectl has no event for it
            await asyncio.sleep(0.1)


def mask(text: str) -> str:
    """An answer without what differs from run to run."""
    for pattern, replacement in _MASKS:
        text = pattern.sub(replacement, text)
    return "\n".join(re.sub(r"^-{3,}$", "---", line.rstrip())[:WIDTH] for line in text.splitlines()[:LINES])


def find_kubectl(*minors: str) -> str | None:
    """A kubectl of one of these versions, as `1.36`: `KUBECTL`, that of the virtual environment, or that of the PATH."""
    for path in (os.environ.get("KUBECTL"), str(Path(sys.executable).with_name("kubectl")), shutil.which("kubectl")):
        if path and Path(path).exists():
            answer = subprocess.run([path, "version", "--client"], capture_output=True, text=True, check=False).stdout
            if any(f"Client Version: v{minor}." in answer for minor in minors):
                return path
    return None
