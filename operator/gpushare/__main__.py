"""`python -m gpushare`, and the command `gpushare`."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the command line and exits with its code."""
    from gpushare.cli import main as cli  # late: nothing but the chosen command is loaded

    sys.exit(cli.run(sys.argv[1:]))


if __name__ == "__main__":
    main()
