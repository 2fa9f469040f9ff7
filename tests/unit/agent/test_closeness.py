"""What the scheduler is told about links between GPUs, and what it makes of it."""

from __future__ import annotations

from dataclasses import replace

from gpushare.agent.closeness import with_closeness
from gpushare.allocation import Topology
from gpushare.domain.links import Ancestor, Link
from support.inventories import t4s
from support.placements import device, node_of

LINKS = (
    Link(gpus=(0, 1), ancestor=Ancestor.SYSTEM),
    Link(gpus=(0, 2), ancestor=Ancestor.SWITCH, nvlinks=2),
    Link(gpus=(1, 2), ancestor=Ancestor.SYSTEM),
)
TOPOLOGY = Topology.of(replace(t4s(3), links=LINKS))


def test_figures() -> None:
    """Each GPU has one for each of the list, itself with 0."""
    devices = with_closeness([device(index) for index in range(3)], TOPOLOGY)

    assert [one["closeness"] for one in devices] == [[0, 10, 250], [10, 0, 10], [250, 10, 0]]


def test_nothing_is_known() -> None:
    """Without links nothing is said, rather than that all are equally far."""
    devices = [device(0), device(1)]

    assert with_closeness(devices, Topology.of(t4s(2))) == devices
    assert with_closeness(devices, None) == devices


def test_scheduler_reads_it_of_the_gpus_that_take_part() -> None:
    """A GPU in MIG mode stands in the list, and is left out of the choice."""
    devices = [device(0), device(1, migEnabled=True), device(2)]
    node = node_of(with_closeness(devices, TOPOLOGY))

    assert node.topology is not None
    assert node.topology.scores == ((0, 250), (250, 0))


def test_scheduler_does_without() -> None:
    """Of an agent that does not tell, and of a list that was cut short, nothing is made up."""
    assert node_of([device(0), device(1)]).topology is None
    assert node_of([device(0, closeness=[0]), device(1, closeness=[1, 0])]).topology is None
    assert node_of([]).topology is None
