"""What a driver asks for before a GPU is well again."""

from __future__ import annotations

import pytest

from gpushare.errors import DeviceError
from gpushare.nvml.port import GpuLost, Recovery
from gpushare.nvml.real import RealNvml
from gpushare.nvml.simulated import SimulatedNvml
from support.nvml_library import Stub, plugged_in

NODE = """
gpu T4
gpu T4
"""


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        pytest.param(0, Recovery.NONE, id="none"),
        pytest.param(1, Recovery.RESET, id="reset"),
        pytest.param(2, Recovery.REBOOT, id="reboot"),
        pytest.param(4, Recovery.DRAIN_AND_RESET, id="drain and reset"),
        pytest.param(5, Recovery.OTHER, id="without a word of ours"),
    ],
)
def test_real_driver_that_tells(nvml: RealNvml, stub: Stub, action: int, expected: Recovery) -> None:
    """Its numbers are our words."""
    assert nvml.recovery(1) is None

    stub.tell(f"recovery 1 {action}")

    assert nvml.recovery(1) is expected
    assert nvml.recovery(0) is None


def test_real_driver_that_is_too_old(stub: Stub) -> None:
    """One that lacks the call tells nothing."""
    with plugged_in(stub, without=("nvmlDeviceGetFieldValues",)):
        nvml = RealNvml()
        nvml.start()
        try:
            assert nvml.recovery(0) is None
        finally:
            nvml.stop()


def test_lost_gpu(nvml: RealNvml, stub: Stub) -> None:
    """Nothing is asked for where nothing answers."""
    stub.tell("lost 1")

    with pytest.raises(GpuLost):
        nvml.recovery(1)


def test_simulated_driver() -> None:
    """Asks for what it was told to."""
    nvml = SimulatedNvml.from_mapping({"gpus": [{"model": "Tesla-T4", "count": 2}]})
    nvml.start()
    nvml.ask_for(1, Recovery.RESET)

    assert nvml.recovery(0) is None
    assert nvml.recovery(1) is Recovery.RESET
    nvml.ask_for(1, None)
    assert nvml.recovery(1) is None
    nvml.lose(1)
    with pytest.raises(DeviceError):
        nvml.recovery(1)


@pytest.mark.parametrize("recovery", list(Recovery))
def test_advice(recovery: Recovery) -> None:
    """Each says what a person is to do; nothing where nothing is."""
    assert bool(recovery.advice) is (recovery is not Recovery.NONE)
