"""The real driver's door: pynvml's answers as values, its failures as ours."""

from __future__ import annotations

from collections.abc import Iterator

import pynvml
import pytest

from gpushare.domain.devices import ComputeCapability, MigEngines, MigInstance
from gpushare.errors import DeviceError
from gpushare.nvml.port import (
    Ancestor,
    Driver,
    DriverUnavailable,
    Event,
    EventKind,
    GpuLost,
    NotSupported,
    NvLink,
    Process,
)
from gpushare.nvml.real import RealNvml
from support.nvml_library import FakeLibrary


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> FakeLibrary:
    """What pynvml takes for the library that it loaded."""
    fake = FakeLibrary()
    monkeypatch.setattr(pynvml, "nvmlLib", fake)
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    return fake


@pytest.fixture
def nvml(library: FakeLibrary) -> Iterator[RealNvml]:
    """Started; stopped afterwards."""
    real = RealNvml()
    real.start()
    yield real
    real.stop()


def test_driver(nvml: RealNvml) -> None:
    """Versions, that of CUDA unpacked."""
    assert nvml.driver() == Driver(version="550.90.07", cuda_version=(12, 4))
    assert nvml.count() == 2


def test_gpu(nvml: RealNvml) -> None:
    """One GPU without MIG; what the host knows stays open."""
    gpu = nvml.gpu(1)

    assert (gpu.index, gpu.uuid, gpu.product, gpu.minor) == (1, "GPU-1", "Tesla T4", 6)
    assert (gpu.memory_mib, gpu.compute_capability) == (40960, ComputeCapability(major=7, minor=5))
    assert (gpu.bus_id, gpu.numa_node, gpu.pci_class, gpu.paths) == ("0000:3c:00.0", None, None, ())
    assert (gpu.mig_capable, gpu.mig_enabled, gpu.mig, gpu.fabric_clique) == (False, False, (), None)


def test_mig(nvml: RealNvml) -> None:
    """Instances where there are some; positions between them may be empty."""
    gpu = nvml.gpu(0)

    assert (gpu.mig_capable, gpu.mig_enabled) == (True, True)
    assert gpu.mig == (
        MigInstance(
            index=2,
            uuid="GPU-100",
            profile="1g.5gb",
            gpu_instance=9,
            compute_instance=0,
            memory_mib=4864,
            multiprocessors=14,
            gpu_slices=1,
            compute_slices=1,
            engines=MigEngines(copy=1),
        ),
    )


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        pytest.param(b"NVIDIA A100-SXM4-40GB MIG 1g.5gb+me", "1g.5gb+me", id="attribute"),
        pytest.param(b"NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb", "1c.3g.20gb", id="compute instance"),
        pytest.param(b"NVIDIA B200 MIG 1g.24gb+me.all", "1g.24gb+me.all", id="all media engines"),
        pytest.param(b"NVIDIA B200 MIG 1g.24gb-me", "1g.24gb-me", id="without media engines"),
        pytest.param(b"NVIDIA A100-SXM4-40GB", "1g.5gb", id="a driver that does not tell"),
    ],
)
def test_profiles(nvml: RealNvml, library: FakeLibrary, name: bytes, profile: str) -> None:
    """The name of an instance has its profile; else it follows from the figures."""
    library.names[100] = name

    assert nvml.gpu(0).mig[0].profile == profile


def test_fabric(nvml: RealNvml, library: FakeLibrary) -> None:
    """Cluster and clique once the GPU is registered in its fabric, by either entry point."""
    library.fabric = {"clusterUuid": tuple(range(16)), "cliqueId": 7, "state": 3, "status": 0}
    expected = "00010203-0405-0607-0809-0a0b0c0d0e0f.7"
    assert nvml.gpu(1).fabric_clique == expected

    library.missing.add("nvmlDeviceGetGpuFabricInfoV")
    pynvml._nvmlGetFunctionPointer_cache.clear()
    assert nvml.gpu(1).fabric_clique == expected

    library.fabric["state"] = 2
    assert nvml.gpu(1).fabric_clique is None


def test_a_name_that_is_no_text(nvml: RealNvml, library: FakeLibrary) -> None:
    """Bytes that are no UTF-8 cost no more than themselves."""
    library.names[1] = b"Tesla \xff T4"

    assert nvml.gpu(1).product == "Tesla \ufffd T4"


@pytest.mark.parametrize(
    ("name", "field", "expected"),
    [
        pytest.param("nvmlDeviceGetMemoryInfo", "memory_mib", 0, id="memory"),
        pytest.param("nvmlDeviceGetMinorNumber", "minor", 1, id="minor"),
        pytest.param("nvmlDeviceGetMigMode", "mig_capable", False, id="MIG"),
        pytest.param("nvmlDeviceGetGpuFabricInfoV", "fabric_clique", None, id="fabric"),
    ],
)
@pytest.mark.parametrize("how", ["not supported", "not there"])
def test_what_a_gpu_can_live_without(
    nvml: RealNvml, library: FakeLibrary, name: str, field: str, expected: object, how: str
) -> None:
    """An old driver, or a simple GPU, is read all the same."""
    if how == "not there":
        library.missing.add(name)
    else:
        library.failing[name] = pynvml.NVML_ERROR_NOT_SUPPORTED

    assert getattr(nvml.gpu(1), field) == expected


def test_cuda_version_unknown(nvml: RealNvml, library: FakeLibrary) -> None:
    """A driver that does not tell it leaves it open."""
    library.missing.add("nvmlSystemGetCudaDriverVersion_v2")

    assert nvml.driver().cuda_version is None


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param(pynvml.NVML_ERROR_GPU_IS_LOST, GpuLost, id="lost"),
        pytest.param(pynvml.NVML_ERROR_NOT_SUPPORTED, NotSupported, id="not supported"),
        pytest.param(pynvml.NVML_ERROR_UNINITIALIZED, DriverUnavailable, id="driver gone"),
        pytest.param(pynvml.NVML_ERROR_UNKNOWN, DeviceError, id="anything else"),
    ],
)
def test_failures(nvml: RealNvml, library: FakeLibrary, code: int, expected: type[DeviceError]) -> None:
    """Each kind of failure is told apart, and says which GPU; the other one is not concerned."""
    library.failing["nvmlDeviceGetUUID:0"] = code

    with pytest.raises(DeviceError, match="GPU 0 cannot be read: ") as failure:
        nvml.gpu(0)
    assert type(failure.value) is expected
    assert nvml.gpu(1).index == 1


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(pynvml.NVML_ERROR_DRIVER_NOT_LOADED, id="driver"),
        pytest.param(pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, id="versions"),
    ],
)
def test_no_driver(library: FakeLibrary, code: int) -> None:
    """A driver that is not there is a state; once it is there, a start is enough."""
    library.failing["nvmlInitWithFlags"] = code
    real = RealNvml()

    with pytest.raises(DriverUnavailable, match="the NVIDIA driver cannot be used"):
        real.start()
    real.stop()
    library.failing.clear()
    real.start()
    assert real.count() == 2
    real.stop()


def test_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without the library, where a path is named that is none either."""
    monkeypatch.setattr(pynvml, "nvmlLib", None)

    with pytest.raises(DriverUnavailable, match="Library Not Found"):
        RealNvml("/nowhere/libnvidia-ml.so.1").start()


def test_started_and_stopped_once(library: FakeLibrary) -> None:
    """The library counts its users: one start, one stop, however often asked."""
    real = RealNvml()
    for _ in range(2):
        real.start()
    for _ in range(2):
        real.stop()

    assert library.calls.count("nvmlInitWithFlags") == 1
    assert library.calls.count("nvmlShutdown") == 1


def test_events(nvml: RealNvml, library: FakeLibrary) -> None:
    """An XID of the whole GPU, one of a MIG instance, an ECC error, and nothing."""
    assert nvml.register_events(1)
    library.events = [
        {"eventType": 8, "eventData": 79, "gpuInstanceId": 0xFFFFFFFF, "computeInstanceId": 0xFFFFFFFF},
        {"eventType": 8, "eventData": 31, "gpuInstanceId": 9, "computeInstanceId": 0},
        {"eventType": 2, "eventData": 5, "gpuInstanceId": 0xFFFFFFFF, "computeInstanceId": 0xFFFFFFFF},
    ]

    assert [nvml.wait_event(0.1) for _ in range(4)] == [
        Event(uuid="GPU-1", xid=79),
        Event(uuid="GPU-1", xid=31, gpu_instance=9, compute_instance=0),
        Event(uuid="GPU-1", kind=EventKind.DOUBLE_BIT_ECC),
        None,
    ]


def test_an_event_of_a_gpu_that_does_not_tell_its_name(nvml: RealNvml, library: FakeLibrary) -> None:
    """It may be any GPU's."""
    nvml.register_events(1)
    library.events = [{"eventType": 8, "eventData": 79, "gpuInstanceId": 0xFFFFFFFF, "computeInstanceId": 0xFFFFFFFF}]
    library.failing["nvmlDeviceGetUUID"] = pynvml.NVML_ERROR_GPU_IS_LOST

    assert nvml.wait_event(0.1) == Event(uuid="", xid=79)


def test_events_not_supported(nvml: RealNvml, library: FakeLibrary) -> None:
    """A GPU without events is no failure; a GPU that fails is."""
    library.failing["nvmlDeviceRegisterEvents"] = pynvml.NVML_ERROR_NOT_SUPPORTED
    assert not nvml.register_events(1)

    library.failing = {"nvmlDeviceRegisterEvents": pynvml.NVML_ERROR_GPU_IS_LOST}
    with pytest.raises(GpuLost, match="GPU 1"):
        nvml.register_events(1)


def test_waiting_fails(nvml: RealNvml, library: FakeLibrary) -> None:
    """Whoever waits is told, whether the library failed or nothing can come."""
    with pytest.raises(DeviceError, match="no GPU's events are registered"):
        nvml.wait_event(0.1)
    nvml.register_events(1)
    library.failing["nvmlEventSetWait_v2"] = pynvml.NVML_ERROR_UNKNOWN
    with pytest.raises(DeviceError, match="waiting for events"):
        nvml.wait_event(0.1)


def test_topology(nvml: RealNvml) -> None:
    """Active links only, and what is at their other end."""
    assert nvml.ancestor(0, 1) is Ancestor.NUMA_NODE
    assert nvml.nvlinks(0) == (
        NvLink(remote_bus_id="0000:c4:00.0"),
        NvLink(remote_bus_id="0000:c4:00.0", to_switch=True),
    )


def test_no_nvlink(nvml: RealNvml, library: FakeLibrary) -> None:
    """A GPU without NVLink has no links."""
    library.failing["nvmlDeviceGetNvLinkState"] = pynvml.NVML_ERROR_NOT_SUPPORTED

    assert nvml.nvlinks(1) == ()


def test_processes(nvml: RealNvml) -> None:
    """Processes with their memory, where it is told."""
    expected = (Process(pid=7, memory_mib=512), Process(pid=8))

    assert nvml.processes(1) == expected
    assert nvml.processes(0) == expected
