"""Nodes from texts."""

from __future__ import annotations

import pytest

from gpushare.domain.links import Ancestor, Link
from gpushare.errors import ConfigurationError
from gpushare.nvml.documents import parse_inventory

SCENARIO = """
nodes:
- {name: cpu01}
- name: gpu01
  labels: {a: b}
  driver: {version: 560.35.03}
  gpus: [{model: T4}]
- name: gpu02
  gpus: [{model: A10, count: 2, switch: 0}]
"""
SAVED = """
gpus:
- {index: 3, uuid: GPU-3, product: Tesla T4, bus: "0000:03:00.0", numa: 1, healthy: false}
- {index: 0}
links:
- {gpus: [3, 0], place: PXB, nvlinks: 2, switched: 1, score: 99}
"""


def test_description() -> None:
    """What a simulated driver is made from."""
    inventory = parse_inventory("driver: {version: 560.35.03}\ngpus: [{model: T4, count: 2, board: 0}]")

    assert [gpu.product for gpu in inventory.gpus] == ["Tesla T4"] * 2
    assert inventory.driver_version == "560.35.03"
    assert inventory.links == (Link(gpus=(0, 1), ancestor=Ancestor.BOARD),)


def test_scenario() -> None:
    """One node of a sandbox: the one that is named, else the first one with GPUs."""
    assert [gpu.product for gpu in parse_inventory(SCENARIO).gpus] == ["Tesla T4"]
    assert [gpu.product for gpu in parse_inventory(SCENARIO, "gpu02").gpus] == ["NVIDIA A10"] * 2


def test_saved() -> None:
    """What was printed on a machine with GPUs; what it does not say is not known."""
    inventory = parse_inventory(SAVED)

    first, last = inventory.gpus
    assert (first.index, first.uuid, first.product, first.numa_node) == (0, "GPU-0", "unknown", None)
    assert (last.index, last.uuid, last.product, last.bus_id) == (3, "GPU-3", "Tesla T4", "0000:03:00.0")
    assert not last.health.healthy
    assert inventory.links == (Link(gpus=(0, 3), ancestor=Ancestor.SWITCHES, nvlinks=2, switched=1),)


@pytest.mark.parametrize(
    ("text", "node", "problem"),
    [
        pytest.param("", "", "must hold gpus", id="empty"),
        pytest.param("[]", "", "line 1: must hold gpus", id="a list"),
        pytest.param("gpus: [{model: T5}]", "", "gpus[0].model (line 1): unknown model 'T5'", id="unknown model"),
        pytest.param("gups: []", "", 'gups (line 1): unknown key; did you mean "gpus"?', id="misspelt"),
        pytest.param("gpus: []", "n1", 'line 1: has no nodes, so none is called "n1"', id="no nodes"),
        pytest.param(SCENARIO, "gpu03", 'nodes (line 2): none is called "gpu03"', id="no such node"),
        pytest.param("nodes: [{name: a}]", "", "nodes (line 1): none has GPUs", id="no GPUs"),
        pytest.param("nodes: [{name: a}]", "a", 'nodes[0] (line 1): "a" has no GPUs', id="a node without GPUs"),
        pytest.param(
            "nodes:\n- {name: a}\n- name: b\n  gpus:\n  - {model: T5}",
            "",
            "nodes[1].gpus[0].model (line 5): unknown model 'T5'",
            id="unknown model of a node",
        ),
        pytest.param("links: []", "", "gpus (line 1): must be a list", id="links without GPUs"),
        pytest.param("links: 7\ngpus: [7]", "", "links (line 1): must be a list", id="no list"),
        pytest.param("gpus: [7]\nlinks: []", "", "gpus[0] (line 1): must hold keys", id="no GPU"),
        pytest.param(
            "links: []\ngpus:\n- {index: 0}\n- {index: 0}",
            "",
            "gpus[1].index (line 4): must be a whole number that no other GPU has",
            id="index twice",
        ),
        pytest.param(
            "gpus: [{index: 0}, {index: 1}]\nlinks: [{gpus: [0, 2]}]",
            "",
            "links[0].gpus (line 2): must be two of the GPUs 0, 1 that have no link yet: [0, 1]",
            id="link to nowhere",
        ),
        pytest.param(
            "gpus: [{index: 0}, {index: 1}]\nlinks: [{gpus: [0, 1], place: NEAR}]",
            "",
            "links[0].place (line 2): must be one of BRD, PIX, PXB, PHB, NODE, SYS",
            id="unknown place",
        ),
        pytest.param(
            "gpus: [{index: 0}, {index: 1}]\nlinks: [{gpus: [0, 1], nvlinks: -1}]",
            "",
            "links[0].nvlinks (line 2): must be a whole number, 0 or more",
            id="negative",
        ),
    ],
)
def test_refusals(text: str, node: str, problem: str) -> None:
    """The place, what is wrong there, and what to write instead."""
    with pytest.raises(ConfigurationError) as caught:
        parse_inventory(text, node)

    assert [each for each in map(str, caught.value.problems) if each.startswith(problem)]
