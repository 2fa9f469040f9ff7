"""Command lines of the processes that have no flags of NVIDIA's to keep to. Used by the `options` of each.

Unlike argparse alone, it raises, since the sandbox runs the same programs among others.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NoReturn

from gpushare.errors import UsageError


class Arguments(argparse.ArgumentParser):
    """Flags by their whole names; whatever else is there is an error that says where to look."""

    def __init__(self, command: str, *, about: str, epilog: str | None = None) -> None:
        super().__init__(
            prog=f"gpushare {command}",
            add_help=False,
            allow_abbrev=False,
            description=about,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def error(self, message: str) -> NoReturn:
        """Called for every wrong flag."""
        raise UsageError(f"{message} ({self.prog} --help lists what there is)")

    def add_cluster(self) -> None:
        """Which cluster: `kubeconfig` and `context`."""
        self.add_argument(
            "--kubeconfig", metavar="FILE", type=Path, help="reach the cluster by this file (default: as a pod does)"
        )
        self.add_argument(
            "--context", metavar="NAME", default="", help="context of the kubeconfig (default: its current one)"
        )

    def add_help_flag(self) -> None:
        """`-h` and `--help`, which `processes.Command` answers; last, as people are used to."""
        self.add_argument("-h", "--help", action="store_true", help="print this text")
