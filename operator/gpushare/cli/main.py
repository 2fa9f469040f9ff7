"""Chooses the command. Called by `__main__`.

The processes that start on nodes (`agent`, `mps`) parse their own flags, since their precedence is NVIDIA's and no library
has it; they are dispatched before click is loaded. Everything that a person types is a click command, loaded when chosen.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Sequence

PROCESSES = {
    "agent": "gpushare.agent.app",
    "cleanup": "gpushare.controller.cleanup",
    "controller": "gpushare.controller.app",
    "crds": "gpushare.controller.definitions",
    "labels": "gpushare.labelling.app",
    "mps": "gpushare.mps.app",
    "scheduler": "gpushare.scheduler.app",
}
"""Commands with a `main(argv, environ) -> exit code` of their own."""


def run(argv: Sequence[str]) -> int:
    """Runs the command line and returns its exit code: 0 fine, 1 failed, 2 wrong usage."""
    if argv and argv[0] in PROCESSES:
        # Loading leaves no garbage: looking for some would take a tenth of an agent's start.
        gc.disable()
        module = importlib.import_module(PROCESSES[argv[0]])
        gc.enable()
        return int(module.main(argv[1:], os.environ))
    from gpushare.cli import commands  # late: the agent must not pay for click

    return commands.run(argv, stderr=sys.stderr)
