"""`make bench`: measures what the design promises, and prints it as a table and as JSON.

Name groups to measure only those: `python -m tests.bench agent`. Figures of one run are comparable with each other; those
of two machines are not.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import agent, allocation, cluster, controller, figures, parts, real, scheduler, soak

GROUPS = {
    "agent": agent.measure,
    "allocation": allocation.measure,
    "sandbox": cluster.measure_sandbox,
    "fleet": cluster.measure_fleet,
    "controller": controller.measure,
    "fractions": parts.measure,
    "scheduler": scheduler.measure,
    "real": real.measure,
    "soak": soak.measure,
}
ONLY_BY_NAME = {"controller", "real", "scheduler", "soak"}
"""Each takes minutes."""


def main(names: list[str]) -> int:
    """Measures the named groups, or all. Returns 2 for a group that there is not."""
    unknown = [name for name in names if name not in GROUPS]
    if unknown:
        print(f"no group {', '.join(unknown)}; there are {', '.join(GROUPS)}", file=sys.stderr)
        return 2
    measured: list[figures.Figure] = []
    for name in names or [name for name in GROUPS if name not in ONLY_BY_NAME]:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        measured += GROUPS[name]()
    print(figures.build_table(measured))
    print()
    print(figures.build_json(measured))
    return 0


sys.exit(main(sys.argv[1:]))
