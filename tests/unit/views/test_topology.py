"""The matrix, and its form for programs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from gpushare.allocation import Topology
from gpushare.domain.devices import Health, Inventory
from gpushare.domain.links import WORDS, Ancestor, Link
from gpushare.nvml.documents import parse_inventory
from gpushare.views.topology import build_document, build_matrix, word_of
from support.inventories import gpu

EXAMPLES = Path(__file__).parents[3] / "examples" / "05-topologies"

PAIR = """\
      GPU0     GPU2     NUMA  PRODUCT
GPU0  X        NV1 150  0     Tesla T4
GPU2  NV1 150  X        -     Tesla T4 (sick: XID 79)

X     the GPU itself
NV#   so many NVLinks
The figure is go-gpuallocator's score: 100 an NVLink, and 10 (far) to 60 (near) for the place in the PCI tree.
"""
SWITCHED = """\
      GPU0      GPU1      GPU2    NUMA  PRODUCT
GPU0  X         NV6 610   PHB 30  0     Tesla T4
GPU1  NV6 610   X         - 0     0     Tesla T4
GPU2  PHB 30    - 0       X       1     Tesla T4

X     the GPU itself
NV#   so many NVLinks; of GPU 0, 1 through NVSwitches
PHB   through a PCI host bridge, which is mostly the CPU's
-     unknown
The figure is go-gpuallocator's score: 100 an NVLink, and 10 (far) to 60 (near) for the place in the PCI tree.
"""
UNKNOWN = """\
      GPU0  GPU1  NUMA  PRODUCT
GPU0  X     - 0   0     Tesla T4
GPU1  - 0   X     0     Tesla T4

X     the GPU itself
-     unknown
The figure is go-gpuallocator's score: 100 an NVLink, and 10 (far) to 60 (near) for the place in the PCI tree.
"""
SICK = Health(healthy=False, reason="XID 79")


@pytest.mark.parametrize(
    ("inventory", "expected"),
    [
        pytest.param(
            Inventory(
                gpus=(gpu(0), replace(gpu(2), numa_node=None, health=SICK)),
                links=(Link(gpus=(0, 2), ancestor=Ancestor.SWITCH, nvlinks=1),),
            ),
            PAIR,
            id="a hole, an unknown NUMA node, a sick GPU",
        ),
        pytest.param(
            Inventory(
                gpus=(gpu(0), gpu(1), gpu(2)),
                links=(
                    Link(gpus=(0, 1), ancestor=Ancestor.SYSTEM, switched=6),
                    Link(gpus=(0, 2), ancestor=Ancestor.HOST_BRIDGE),
                    Link(gpus=(1, 2)),
                ),
            ),
            SWITCHED,
            id="NVSwitch, and a place that is not told",
        ),
        pytest.param(Inventory(gpus=(gpu(0), gpu(1))), UNKNOWN, id="no links at all"),
    ],
)
def test_matrix(inventory: Inventory, expected: str) -> None:
    """Words and scores in columns, and only the words that occur are explained."""
    found = build_matrix(inventory, Topology.of(inventory))

    squeezed = [" ".join(line.split()) for line in found.splitlines()]
    assert squeezed == [" ".join(line.split()) for line in expected.splitlines()]


@pytest.mark.parametrize("ancestor", list(Ancestor))
def test_every_place_has_a_word(ancestor: Ancestor) -> None:
    """No place is shown as a number."""
    inventory = Inventory(gpus=(gpu(0), gpu(1)), links=(Link(gpus=(0, 1), ancestor=ancestor),))

    assert word_of(inventory.links[0]) == WORDS[ancestor]
    assert f"\n{WORDS[ancestor]:4}  " in build_matrix(inventory, Topology.of(inventory))


@pytest.mark.parametrize("name", ["dgx1-volta", "hgx-h100"])
def test_there_and_back(name: str) -> None:
    """What was printed for programs can be read again, and is the same."""
    inventory = parse_inventory((EXAMPLES / f"{name}.yaml").read_text())
    topology = Topology.of(inventory)
    document = build_document(inventory, topology)
    again = parse_inventory(yaml.safe_dump(document))

    assert Topology.of(again) == topology
    assert build_document(again, topology) == document
