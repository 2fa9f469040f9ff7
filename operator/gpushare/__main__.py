"""`python -m gpushare`, and the commands `gpushare` and `kubectl-inspect-cgpu`."""

from __future__ import annotations

import os
import sys


def main(*before: str) -> None:
    """Runs the command line, behind the words given, and exits with its code."""
    from gpushare.cli import main as cli  # late: nothing but the chosen command is loaded

    try:
        code = cli.run([*before, *sys.argv[1:]])
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        # Whoever reads has seen enough, as `head` does. Python writes what is left once more at its end: nobody reads that.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code)


def inspect() -> None:
    """`kubectl inspect cgpu`, as a plugin of kubectl."""
    main("inspect")


if __name__ == "__main__":
    main()
