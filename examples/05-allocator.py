"""Gives out GPUs in pairs, fours and eights, as the example of go-gpuallocator's README does: `python examples/05-allocator.py`.

The node is simulated, a DGX-1 with eight Voltas. On a machine with GPUs, take `RealNvml()` of `gpushare.nvml.real`.
"""

from __future__ import annotations

from pathlib import Path

from gpushare.allocation import Allocator, BestEffort
from gpushare.domain.devices import Inventory
from gpushare.errors import AllocationError
from gpushare.nvml.documents import parse_inventory
from gpushare.views.topology import build_matrix

NODE = Path(__file__).parent / "05-topologies" / "dgx1-volta.yaml"


def read_node() -> Inventory:
    """The GPUs and their links; of a real machine: `gpushare.nvml.reading.read_inventory(RealNvml())`."""
    return parse_inventory(NODE.read_text(encoding="utf-8"))


def main() -> None:
    """Shows the GPUs, then allocates and frees."""
    allocator = Allocator(read_node(), BestEffort())
    for gpu in allocator.remaining:
        print(f"GPU {gpu.index}: {gpu.product}, {gpu.uuid}, bus {gpu.bus_id}, NUMA node {gpu.numa_node}")
    print()
    print(build_matrix(read_node(), allocator.topology))

    for size in (1, 2, 4, 8):
        gpus = allocator.allocate(size)
        indices = [gpu.index for gpu in gpus]
        print(f"\n{size} GPUs: {indices}, score {allocator.topology.score_of_set(indices)}")
        allocator.free(*gpus)

    allocator.allocate_specific(0, 3)
    print(f"\nwith GPU 0 and 3 given out, 2 GPUs: {[gpu.index for gpu in allocator.allocate(2)]}")
    try:
        allocator.allocate(8)
    except AllocationError as error:
        print(f"8 GPUs: {error}")


if __name__ == "__main__":
    main()
