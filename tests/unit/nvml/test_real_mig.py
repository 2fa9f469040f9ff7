"""MIG through the real driver's door, also while somebody changes it."""

from __future__ import annotations

import pynvml
import pytest

from gpushare.domain.devices import MigEngines, MigInstance
from gpushare.errors import DeviceError
from gpushare.nvml.real import RealNvml
from support.nvml_library import Stub

NODE = "gpu A100-40GB mig=on\nsplit 0 - - 1g.5gb\n"


def test_mig(nvml: RealNvml) -> None:
    """Instances where there are some; positions between them may be empty."""
    gpu = nvml.gpu(0)

    assert (gpu.mig_capable, gpu.mig_enabled) == (True, True)
    assert gpu.mig == (
        MigInstance(
            index=2,
            uuid=gpu.mig[0].uuid,
            profile="1g.5gb",
            gpu_instance=7,
            compute_instance=0,
            memory_mib=4864,
            multiprocessors=14,
            gpu_slices=1,
            compute_slices=1,
            engines=MigEngines(copy=1),
        ),
    )


@pytest.mark.parametrize("profile", ["1g.5gb+me", "1g.5gb+me.all", "1g.5gb-me", "1c.3g.20gb", "2c.4g.20gb", "7g.40gb"])
def test_profiles(nvml: RealNvml, stub: Stub, profile: str) -> None:
    """The name of an instance has its profile."""
    stub.tell(f"split 0 {profile}")

    assert nvml.gpu(0).mig[0].profile == profile


@pytest.mark.parametrize("profile", ["1g.5gb", "1c.3g.20gb", "2c.4g.20gb", "7g.40gb"])
def test_profiles_that_are_not_told(nvml: RealNvml, stub: Stub, profile: str) -> None:
    """Where an instance has no name, its figures tell the profile."""
    not_supported = pynvml.NVML_ERROR_NOT_SUPPORTED
    stub.tell(f"split 0 {profile}", f"at nvmlDeviceGetAttributes_v2 fail nvmlDeviceGetName {not_supported} 0")

    assert nvml.gpu(0).mig[0].profile == profile


def test_a_layout_that_changes_while_it_is_read(nvml: RealNvml, stub: Stub) -> None:
    """What is told is what there was at one moment, never some of this and some of that."""
    stub.tell("split 0 1g.5gb 1g.5gb", "at nvmlDeviceGetComputeInstanceId split 0 3g.20gb 3g.20gb")

    assert [mig.profile for mig in nvml.gpu(0).mig] == ["3g.20gb", "3g.20gb"]


def test_mig_that_is_switched_off_while_it_is_read(nvml: RealNvml, stub: Stub) -> None:
    """The handles of before are worth nothing then; the GPU is a whole one."""
    stub.tell("at nvmlDeviceGetAttributes_v2 split 0 off")

    gpu = nvml.gpu(0)

    assert (gpu.mig_capable, gpu.mig_enabled, gpu.mig) == (True, False, ())


def test_a_layout_that_never_rests(nvml: RealNvml, stub: Stub) -> None:
    """Reading does not go on for ever; the next reading will tell."""
    stub.tell(*["at nvmlDeviceGetComputeInstanceId split 0 1g.5gb"] * 9)

    with pytest.raises(DeviceError, match="GPU 0 cannot be read: its MIG layout keeps changing"):
        nvml.gpu(0)
