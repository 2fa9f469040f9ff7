"""`python -m gpushare`, and the commands `gpushare` and `kubectl-inspect-cgpu`."""

from __future__ import annotations

import sys


def main(*before: str) -> None:
    """Runs the command line, behind the words given, and exits with its code."""
    from gpushare.cli import main as cli  # late: nothing but the chosen command is loaded

    sys.exit(cli.run([*before, *sys.argv[1:]]))


def inspect() -> None:
    """`kubectl inspect cgpu`, as a plugin of kubectl."""
    main("inspect")


if __name__ == "__main__":
    main()
