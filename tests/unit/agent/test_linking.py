"""What the agent knows of the links between its GPUs, and how often it asks."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from gpushare.agent.linking import Linking
from gpushare.domain.devices import GPU
from gpushare.domain.links import Ancestor
from gpushare.errors import DeviceError
from gpushare.nvml.port import DriverUnavailable, NotSupported
from gpushare.nvml.simulated import SimulatedNvml


class Asked(SimulatedNvml):
    """Counts questions about places in the PCI tree, and fails as it is told."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.questions = 0
        self.failure: DeviceError | None = None

    def ancestor(self, index: int, other: int) -> Ancestor:
        self.questions += 1
        if self.failure is not None:
            raise self.failure
        return super().ancestor(index, other)


@pytest.fixture
def nvml() -> Asked:
    made = Asked.from_mapping({"gpus": [{"model": "A100", "switch": 0, "count": 3}]})
    made.start()
    return made


def gpus_of(nvml: Asked, *indices: int) -> list[GPU]:
    return [nvml.gpu(index) for index in indices]


def test_read_once(nvml: Asked) -> None:
    """For the same GPUs nothing is asked again; for others everything is."""
    linking = Linking(nvml, logging.getLogger("test"))
    assert linking.topology is None

    assert linking.read(gpus_of(nvml, 0, 1, 2))
    assert not linking.read(gpus_of(nvml, 0, 1, 2))
    assert nvml.questions == 3
    assert linking.topology is not None
    assert linking.topology.score(0, 2) == 50

    assert linking.read(gpus_of(nvml, 0, 2))
    assert nvml.questions == 4
    assert linking.topology.gpus == (0, 2)


def test_what_fails_is_asked_again(nvml: Asked, caplog: pytest.LogCaptureFixture) -> None:
    """The next reading may succeed; the same failure is told once."""
    linking = Linking(nvml, logging.getLogger("test"))
    nvml.failure = DeviceError("busy")
    assert [linking.read(gpus_of(nvml, 0, 1)) for _ in range(2)] == [True, False]
    assert [record.message for record in caplog.records] == ["link between GPUs is odd"]
    assert [str(problem) for problem in linking.problems] == ["gpus[0]: busy"]

    nvml.failure = None
    assert linking.read(gpus_of(nvml, 0, 1))
    assert linking.problems == ()
    assert linking.topology is not None
    assert linking.topology.score(0, 1) == 50


def test_what_cannot_be_had_is_not(nvml: Asked, caplog: pytest.LogCaptureFixture) -> None:
    """A virtual GPU has no place in a PCI tree: that is no failure, and is not asked for again."""
    linking = Linking(nvml, logging.getLogger("test"))
    nvml.failure = NotSupported("no place")
    for _ in range(2):
        linking.read(gpus_of(nvml, 0, 1))

    assert nvml.questions == 1
    assert caplog.records == []


def test_no_driver(nvml: Asked) -> None:
    """What was known stays, and is asked for again."""
    linking = Linking(nvml, logging.getLogger("test"))
    linking.read(gpus_of(nvml, 0, 1))
    before, nvml.failure = linking.topology, DriverUnavailable("gone")

    with pytest.raises(DriverUnavailable):
        linking.read(gpus_of(nvml, 0, 1, 2))
    assert linking.topology is before

    nvml.failure = None
    assert linking.read(gpus_of(nvml, 0, 1, 2))
