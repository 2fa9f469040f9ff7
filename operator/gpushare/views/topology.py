"""How the GPUs of a node are connected: the matrix that people know from nvidia-smi, with scores, and the same as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpushare.allocation.topology import Topology
from gpushare.domain.devices import GPU, Inventory
from gpushare.domain.links import WORDS, Ancestor, Link
from gpushare.views.tables import build_table

_LEGEND: Final[Mapping[Ancestor, str]] = {
    Ancestor.BOARD: "on one board",
    Ancestor.SWITCH: "behind one PCI switch",
    Ancestor.SWITCHES: "behind several PCI switches, without the host bridge",
    Ancestor.HOST_BRIDGE: "through a PCI host bridge, which is mostly the CPU's",
    Ancestor.NUMA_NODE: "through host bridges of one NUMA node",
    Ancestor.SYSTEM: "through what connects NUMA nodes",
}


def word_of(link: Link | None) -> str:
    """The best of a link in nvidia-smi's words: `NV12`, else where the two meet, `PIX`."""
    if link is None:
        return "-"
    if link.nvlinks or link.switched:
        return f"NV{link.nvlinks + link.switched}"
    return "-" if link.ancestor is None else WORDS[link.ancestor]


def build_matrix(inventory: Inventory, topology: Topology) -> str:
    """One row and column a GPU, each cell a word and the score; then what the words mean."""
    by_pair = {link.gpus: link for link in topology.links}
    by_index = {gpu.index: gpu for gpu in inventory.gpus}
    rows = []
    for one in topology.gpus:
        cells = [
            f"{word_of(by_pair.get((min(one, two), max(one, two))))} {topology.score(one, two)}" if one != two else "X"
            for two in topology.gpus
        ]
        gpu = by_index[one]
        rows.append([f"GPU{one}", *cells, "-" if gpu.numa_node is None else str(gpu.numa_node), _product_of(gpu)])
    table = build_table(["", *(f"GPU{gpu}" for gpu in topology.gpus), "NUMA", "PRODUCT"], rows)
    return "\n".join([table, "", *_legend(topology)])


def build_document(inventory: Inventory, topology: Topology) -> Mapping[str, Any]:
    """What `nvml.documents` reads again, with scores."""
    return {
        "gpus": [
            {
                "index": gpu.index,
                "uuid": gpu.uuid,
                "product": gpu.product,
                "bus": gpu.bus_id,
                "numa": gpu.numa_node,
                "healthy": gpu.health.healthy,
            }
            for gpu in inventory.gpus
        ],
        "links": [
            {
                "gpus": list(link.gpus),
                "place": None if link.ancestor is None else WORDS[link.ancestor],
                "nvlinks": link.nvlinks,
                "switched": link.switched,
                "score": topology.score(*link.gpus),
            }
            for link in topology.links
        ],
    }


def _product_of(gpu: GPU) -> str:
    return gpu.product if gpu.health.healthy else f"{gpu.product} (sick: {gpu.health.reason or 'unknown'})"


def _legend(topology: Topology) -> Iterator[str]:
    places = {link.ancestor for link in topology.links if not link.nvlinks and not link.switched}
    yield "X     the GPU itself"
    switched = sorted({gpu for link in topology.links if link.switched for gpu in link.gpus})
    if switched or any(link.nvlinks for link in topology.links):
        through = f"; of GPU {', '.join(map(str, switched))} through NVSwitches" if switched else ""
        yield f"NV#   so many NVLinks{through}"
    for ancestor, meaning in _LEGEND.items():
        if ancestor in places:
            yield f"{WORDS[ancestor]:4}  {meaning}"
    if not topology.links or None in places:
        yield "-     unknown"
    yield "The figure is go-gpuallocator's score: 100 an NVLink, and 10 (far) to 60 (near) for the place in the PCI tree."
