"""A policy of your own is a class with a `choose`: here GPUs that are far from each other: `python examples/05-own-policy.py`.

Jobs that fill the PCI bus rather than talk to each other want just that.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpushare.allocation import Allocator, Topology
from gpushare.nvml.documents import parse_inventory

NODE = Path(__file__).parent / "05-topologies" / "dgx1-volta.yaml"


class Apart:
    """One GPU after the other, each as far as can be from those before it."""

    def choose(
        self, topology: Topology, available: Sequence[int], required: Sequence[int], size: int
    ) -> tuple[int, ...]:
        """See `gpushare.allocation.Policy`."""
        if len(available) < size or not set(required) <= set(available):
            return ()
        chosen = list(required)
        while len(chosen) < size:
            left = sorted(set(available) - set(chosen))
            chosen.append(min(left, key=lambda gpu: sum(topology.score(gpu, other) for other in chosen)))
        return tuple(chosen)


def main() -> None:
    """Allocates pairs until none is left."""
    allocator = Allocator(parse_inventory(NODE.read_text(encoding="utf-8")), Apart())
    while allocator.remaining:
        print([gpu.index for gpu in allocator.allocate(2)])


if __name__ == "__main__":
    main()
