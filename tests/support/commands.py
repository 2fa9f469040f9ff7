"""`gpushare` as a process, for tests that see it as a person does."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PATIENCE = 180.0
GPUSHARE = (sys.executable, "-m", "gpushare")


def run(*args: str, seconds: float = 500.0, **environ: str) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end. Standard error comes with the output."""
    return subprocess.run(
        [*GPUSHARE, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=seconds, check=False, env={**os.environ, **environ},
    )  # fmt: skip


@contextlib.contextmanager
def sandbox(kubeconfig: Path, *args: str, **environ: str) -> Iterator[subprocess.Popen[bytes]]:
    """A sandbox that is ready: its kubeconfig is written. Ended when the block ends, if it has not been before."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [*GPUSHARE, "sandbox", "--write-kubeconfig", str(kubeconfig), *args],
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **environ},
        )  # fmt: skip
        try:
            wait_for(kubeconfig, process)
            yield process
        finally:
            process.terminate()
            process.wait(PATIENCE)


def wait_for(file: Path, process: subprocess.Popen[bytes]) -> None:
    """Returns once a file is there."""
    end = time.monotonic() + PATIENCE
    while not file.exists():
        assert process.poll() is None, f"ended with {process.returncode} before it was ready"
        assert time.monotonic() < end, "not ready in time"
        time.sleep(0.01)
