"""The real kubectl, as a test types it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

PATIENCE: Final = 180.0
"""Seconds that anything may take on a busy machine."""
_PAUSE: Final = 0.2
"""Each look costs a tenth of a second of the processor that others wait for."""
_COMMAND_SECONDS: Final = 180
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Kubectl:
    """One user's."""

    kubeconfig: Path

    def run(self, *args: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """Runs it to its end; `text` is its standard input."""
        program = Path(sys.executable).with_name("kubectl")
        environ = {
            **os.environ,
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(self.kubeconfig.parent / "cache"),
            # It finds its plugins there.
            "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        }
        return subprocess.run(
            [program, *args],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=_COMMAND_SECONDS,
            env=environ,
        )

    def __call__(self, *args: str, text: str = "") -> str:
        """What it prints. Raises AssertionError where it fails."""
        done = self.run(*args, text=text)
        assert done.returncode == 0, f"kubectl {' '.join(args)}: {done.stderr}{done.stdout}"
        return done.stdout.strip()

    def answers(self, *args: str) -> bool:
        """Whether it succeeds."""
        return self.run(*args).returncode == 0

    def get(self, *args: str) -> dict[str, Any]:
        """An object, or a list of them."""
        found: dict[str, Any] = json.loads(self("get", *args, "-o", "json"))
        return found

    def items(self, *args: str) -> list[dict[str, Any]]:
        """The objects of a list."""
        return list(self.get(*args)["items"])

    def apply(self, *manifests: dict[str, Any]) -> None:
        """Applies objects; by the server, since that asks for no schemas first."""
        self(
            "apply",
            "--server-side",
            "--force-conflicts",
            "-f",
            "-",
            text=json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}),
        )


def until(what: str, holds: Callable[[], T], seconds: float = PATIENCE) -> T:
    """Waits until `holds` gives something true, and returns that. An AssertionError in it means not yet."""
    end, last = time.monotonic() + seconds, None
    while True:
        try:
            if found := holds():
                return found
            last = repr(found)
        except AssertionError as error:
            last = str(error)
        assert time.monotonic() < end, f"waited in vain: {what}; last: {last}"
        time.sleep(_PAUSE)
