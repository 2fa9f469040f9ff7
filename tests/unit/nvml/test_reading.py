"""Reading what connects GPUs, from drivers that tell everything, something, or nothing."""

from __future__ import annotations

from typing import Any

import pytest

from gpushare.domain.links import Ancestor, Link
from gpushare.errors import DeviceError
from gpushare.nvml.port import DriverUnavailable, NvLink
from gpushare.nvml.reading import read_inventory, read_links
from gpushare.nvml.simulated import SimulatedNvml


class Counted(SimulatedNvml):
    """Counts what it is asked, and fails where it is told to."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.calls: list[tuple[int, ...]] = []
        self.failures: dict[tuple[int, ...], DeviceError] = {}

    def nvlinks(self, index: int) -> tuple[NvLink, ...]:
        self._note(index)
        return super().nvlinks(index)

    def ancestor(self, index: int, other: int) -> Ancestor:
        self._note(index, other)
        return super().ancestor(index, other)

    def _note(self, *place: int) -> None:
        self.calls.append(place)
        if place in self.failures:
            raise self.failures[place]


def driver(*gpus: dict[str, Any]) -> Counted:
    nvml = Counted.from_mapping({"gpus": [{"model": "A100", **gpu} for gpu in gpus]})
    nvml.start()
    return nvml


def test_links() -> None:
    """PCI places, direct NVLinks, and those through switches, pair by pair."""
    nvml = driver(
        {"numa": 0, "switch": 0, "nvlink": {1: 4}},
        {"numa": 0, "switch": 0, "nvlink": {"switch": 6}},
        {"numa": 1, "nvlink": {"switch": 12}},
    )
    inventory = read_inventory(nvml)

    assert inventory.problems == ()
    assert inventory.links == (
        Link(gpus=(0, 1), ancestor=Ancestor.SWITCH, nvlinks=4),
        Link(gpus=(0, 2), ancestor=Ancestor.SYSTEM),
        Link(gpus=(1, 2), ancestor=Ancestor.SYSTEM, switched=6),
    )


def test_everything_is_asked_once() -> None:
    """Each GPU for its links, each pair for its place: on some machines every question takes half a second."""
    nvml = driver(*[{}] * 4)
    read_inventory(nvml)

    assert len(nvml.calls) == len(set(nvml.calls)) == 4 + 6


def test_lost_gpu() -> None:
    """A GPU that has fallen off the bus takes nobody with it."""
    nvml = driver(*[{"switch": 0}] * 3)
    nvml.lose(1)
    inventory = read_inventory(nvml)

    assert [gpu.index for gpu in inventory.gpus] == [0, 2]
    assert inventory.links == (Link(gpus=(0, 2), ancestor=Ancestor.SWITCH),)
    assert [problem.path for problem in inventory.problems] == ["gpus[1]"]


def test_gpu_lost_between_two_questions() -> None:
    """The GPUs that were found before are asked for their links; the one that does not answer any more is named."""
    nvml = driver(*[{"switch": 0}] * 3)
    gpus = [nvml.gpu(index) for index in range(3)]
    nvml.lose(2)
    read = read_links(nvml, gpus)

    assert read.links == (Link(gpus=(0, 1), ancestor=Ancestor.SWITCH),)
    assert [str(problem) for problem in read.problems] == ["gpus[2].nvlink: GPU 2 is lost"]


def test_ends_that_count_differently() -> None:
    """The lesser number is believed, and the difference is told."""
    read = read_inventory(driver({"nvlink": {1: 4}}, {"nvlink": {0: 3}}))

    assert read.links[0].nvlinks == 3
    assert read.problems == ()
    assert [str(problem) for problem in read.link_problems] == [
        "gpus[0].nvlink: 4 NVLinks to GPU 1, which counts 3 back; the lesser number is believed"
    ]


def test_unknown_place() -> None:
    """A pair whose place in the PCI tree is not told keeps its NVLinks."""
    nvml = driver({"nvlink": {1: 2}}, {})
    nvml.failures[0, 1] = DeviceError("no topology")
    inventory = read_inventory(nvml)

    assert inventory.links == (Link(gpus=(0, 1), ancestor=None, nvlinks=2),)
    assert [str(problem) for problem in inventory.link_problems] == ["gpus[0]: no topology"]


@pytest.mark.parametrize("place", [pytest.param((0,), id="links"), pytest.param((0, 1), id="place")])
def test_driver_goes_away(place: tuple[int, ...]) -> None:
    """Where nothing can be asked any more, there is no topology to believe in."""
    nvml = driver({}, {})
    nvml.failures[place] = DriverUnavailable("gone")

    with pytest.raises(DriverUnavailable, match="gone"):
        read_inventory(nvml)


def test_any_order_of_gpus() -> None:
    """A Link names the lower index first, whatever the order of the question."""
    nvml = driver({}, {})

    assert read_links(nvml, [nvml.gpu(1), nvml.gpu(0)]).links[0].gpus == (0, 1)
