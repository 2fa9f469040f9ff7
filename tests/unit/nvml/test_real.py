"""The real driver's door, over a library of our own: its answers as values, its failures as ours."""

from __future__ import annotations

import threading
from pathlib import Path

import pynvml
import pytest

from gpushare.domain.devices import ComputeCapability
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
from support.nvml_library import Stub, build_library, plugged_in, write_stub

NODE = """
gpu A100-40GB bus=0000:3b:00.0 minor=5 numa=0 mig=on
gpu T4 bus=0000:3c:00.0 minor=6 numa=0
split 0 - - 1g.5gb
nvlink 0 1 1
nvlink 0 switch 1
"""
SPLIT, WHOLE = 0, 1
"""A divided A100 and a T4."""


def test_driver(nvml: RealNvml) -> None:
    """Versions, that of CUDA unpacked."""
    assert nvml.driver() == Driver(version="550.90.07", cuda_version=(12, 4))
    assert nvml.count() == 2


def test_gpu(nvml: RealNvml) -> None:
    """One GPU without MIG; what the host knows stays open."""
    gpu = nvml.gpu(WHOLE)

    assert (gpu.index, gpu.product, gpu.minor) == (1, "Tesla T4", 6)
    assert gpu.uuid.startswith("GPU-")
    assert (gpu.memory_mib, gpu.compute_capability) == (15360, ComputeCapability(major=7, minor=5))
    assert (gpu.bus_id, gpu.numa_node, gpu.pci_class, gpu.paths) == ("0000:3c:00.0", None, None, ())
    assert (gpu.mig_capable, gpu.mig_enabled, gpu.mig, gpu.fabric_clique) == (False, False, (), None)


def test_a_gpu_that_is_lost_while_it_is_read(nvml: RealNvml, stub: Stub) -> None:
    """Half an answer is none; once it is back it is the one it was."""
    before = nvml.gpu(WHOLE)
    stub.tell("at nvmlDeviceGetPciInfo_v3 lost 1")

    with pytest.raises(GpuLost, match="GPU 1 cannot be read"):
        nvml.gpu(WHOLE)
    stub.tell("restore 1")
    assert nvml.gpu(WHOLE) == before


@pytest.mark.parametrize("without", [(), ("nvmlDeviceGetGpuFabricInfoV",)], ids=["new driver", "older driver"])
def test_fabric(tmp_path: Path, without: tuple[str, ...]) -> None:
    """Cluster and clique, by either entry point; of GPUs that can have one."""
    cluster = "000102030405060708090a0b0c0d0e0f"
    with plugged_in(write_stub(tmp_path, f"gpu H100\ngpu T4\nfabric {cluster} 7\n"), without=without):
        nvml = RealNvml()
        nvml.start()
        found = [nvml.gpu(index).fabric_clique for index in range(2)]
        nvml.stop()

    assert found == ["00010203-0405-0607-0809-0a0b0c0d0e0f.7", None]


def test_a_fabric_that_is_not_ready(nvml: RealNvml, stub: Stub) -> None:
    """A GPU that is not registered in a fabric yet has no clique."""
    nvml.stop()
    stub.describe("gpu H100\n")
    nvml.start()

    assert nvml.gpu(0).fabric_clique is None


@pytest.mark.parametrize("code", [pynvml.NVML_ERROR_UNKNOWN, pynvml.NVML_ERROR_INVALID_ARGUMENT])
def test_a_fabric_that_cannot_be_asked(nvml: RealNvml, stub: Stub, code: int) -> None:
    """The clique is for a label only: a GPU without is as good as any."""
    nvml.stop()
    stub.describe(f"gpu H100\nfail nvmlDeviceGetGpuFabricInfoV {code}\nfail nvmlDeviceGetGpuFabricInfo {code}\n")
    nvml.start()

    assert (nvml.gpu(0).product, nvml.gpu(0).fabric_clique) == ("NVIDIA H100 80GB HBM3", None)


def test_names_that_are_no_text(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 cost no more than themselves, in the name of an instance too."""
    node = b"gpu A100-40GB name=NVIDIA_A\xff100 mig=on\nmig 0 1g.5gb\n"
    with plugged_in(write_stub(tmp_path, node)):
        nvml = RealNvml()
        nvml.start()
        gpu = nvml.gpu(0)
        nvml.stop()

    assert (gpu.product, gpu.mig[0].profile) == ("NVIDIA A\ufffd100", "1g.5gb")


CAN_LACK = [
    pytest.param("nvmlDeviceGetMemoryInfo", "memory_mib", 0, id="memory"),
    pytest.param("nvmlDeviceGetMinorNumber", "minor", 1, id="minor"),
    pytest.param("nvmlDeviceGetMigMode", "mig_capable", False, id="MIG"),
    pytest.param("nvmlDeviceGetGpuFabricInfoV", "fabric_clique", None, id="fabric"),
]


@pytest.mark.parametrize(("name", "field", "expected"), CAN_LACK)
def test_what_is_not_supported(nvml: RealNvml, stub: Stub, name: str, field: str, expected: object) -> None:
    """A simple GPU is read all the same."""
    stub.tell(f"fail {name} {pynvml.NVML_ERROR_NOT_SUPPORTED}")

    assert getattr(nvml.gpu(WHOLE), field) == expected


@pytest.mark.parametrize(("name", "field", "expected"), CAN_LACK)
def test_what_an_old_driver_lacks(tmp_path: Path, name: str, field: str, expected: object) -> None:
    """Functions that came later than the driver are not missed."""
    with plugged_in(write_stub(tmp_path, NODE), without=(name,)):
        nvml = RealNvml()
        nvml.start()
        gpu = nvml.gpu(WHOLE)
        nvml.stop()

    assert getattr(gpu, field) == expected


def test_cuda_version_unknown(tmp_path: Path) -> None:
    """A driver that does not tell it leaves it open."""
    with plugged_in(write_stub(tmp_path, NODE), without=("nvmlSystemGetCudaDriverVersion_v2",)):
        nvml = RealNvml()
        nvml.start()
        driver = nvml.driver()
        nvml.stop()

    assert driver == Driver(version="550.90.07", cuda_version=None)


@pytest.mark.parametrize("code", [pynvml.NVML_ERROR_UNKNOWN, pynvml.NVML_ERROR_NO_PERMISSION])
def test_cuda_version_that_cannot_be_asked(nvml: RealNvml, stub: Stub, code: int) -> None:
    """It is for labels: no node loses its GPUs for want of it."""
    stub.tell(f"fail nvmlSystemGetCudaDriverVersion_v2 {code}")

    assert nvml.driver() == Driver(version="550.90.07", cuda_version=None)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param(pynvml.NVML_ERROR_GPU_IS_LOST, GpuLost, id="lost"),
        pytest.param(pynvml.NVML_ERROR_NOT_SUPPORTED, NotSupported, id="not supported"),
        pytest.param(pynvml.NVML_ERROR_UNINITIALIZED, DriverUnavailable, id="driver gone"),
        pytest.param(pynvml.NVML_ERROR_UNKNOWN, DeviceError, id="anything else"),
    ],
)
def test_failures(nvml: RealNvml, stub: Stub, code: int, expected: type[DeviceError]) -> None:
    """Each kind of failure is told apart, and says which GPU; the other one is not concerned."""
    stub.tell(f"fail nvmlDeviceGetUUID {code} 0")

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
def test_no_driver(stub: Stub, code: int) -> None:
    """A driver that is not there is a state; once it is there, a start is enough."""
    stub.describe(f"fail nvmlInitWithFlags {code}\n")
    nvml = RealNvml()

    with pytest.raises(DriverUnavailable, match="the NVIDIA driver cannot be used"):
        nvml.start()
    nvml.stop()
    stub.describe(NODE)
    nvml.start()
    assert nvml.count() == 2
    nvml.stop()


def test_gpus_that_come_and_go(nvml: RealNvml, stub: Stub) -> None:
    """The driver counts its GPUs when it is connected to: a start after a stop sees the others."""
    stub.describe("gpus 12 T4\n")
    assert nvml.count() == 2

    nvml.stop()
    nvml.start()

    assert nvml.count() == 12
    assert [nvml.gpu(index).minor for index in range(12)] == list(range(12))


@pytest.mark.parametrize("content", [None, b"\x7fELF, but not really"], ids=["not there", "no library"])
def test_no_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes | None) -> None:
    """A machine without the library, where a path is named that is none either; the text says what is wrong with it."""

    def load(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(pynvml, "nvmlLib", None)
    monkeypatch.setattr(pynvml, "CDLL", load)
    path = tmp_path / "libnvidia-ml.so.1"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(DriverUnavailable, match=f"{path}: .*: NVML Shared Library Not Found"):
        RealNvml(lambda: str(path)).start()


def test_a_driver_that_was_replaced(stub: Stub) -> None:
    """Its library is looked for at each start: one that was installed meanwhile is the one that is asked."""
    missing = "nvmlSystemGetCudaDriverVersion_v2"
    installed = [build_library(), build_library(without=(missing,))]
    nvml = RealNvml(lambda: str(installed[0]))
    nvml.start()
    assert nvml.driver().cuda_version == (12, 4)
    nvml.stop()

    del installed[0]
    nvml.start()

    assert nvml.driver().cuda_version is None
    nvml.stop()


@pytest.mark.parametrize("function", ["nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMigMode", "nvmlDeviceGetPciInfo_v3"])
def test_half_an_answer_is_none(nvml: RealNvml, stub: Stub, function: str) -> None:
    """A GPU of which something fails that it can tell is not trusted with anything."""
    stub.tell(f"fail {function} {pynvml.NVML_ERROR_UNKNOWN} 0")

    with pytest.raises(DeviceError, match="GPU 0 cannot be read: Unknown Error"):
        nvml.gpu(0)


def test_started_and_stopped_once(stub: Stub) -> None:
    """The library counts its users: one start, one stop, however often asked."""
    nvml = RealNvml()
    nvml.start()
    nvml.start()
    nvml.stop()

    with pytest.raises(DriverUnavailable):
        nvml.count()
    nvml.stop()
    nvml.start()
    assert nvml.count() == 2
    nvml.stop()


def test_events(nvml: RealNvml, stub: Stub) -> None:
    """An XID of the whole GPU, one of a MIG instance, an ECC error, and nothing; of a GPU that was not asked about neither."""
    assert nvml.register_events(SPLIT)
    uuid = nvml.gpu(SPLIT).uuid
    stub.tell("xid 1 48", "xid 0 79", f"xid {uuid} 31 9 0", "ecc 0 double", "ecc 0 single")

    assert [nvml.wait_event(0.1) for _ in range(5)] == [
        Event(uuid=uuid, xid=79),
        Event(uuid=uuid, xid=31, gpu_instance=9, compute_instance=0),
        Event(uuid=uuid, kind=EventKind.DOUBLE_BIT_ECC),
        Event(uuid=uuid, kind=EventKind.SINGLE_BIT_ECC),
        None,
    ]


def test_an_event_of_a_gpu_that_does_not_tell_its_name(nvml: RealNvml, stub: Stub) -> None:
    """It may be any GPU's."""
    nvml.register_events(WHOLE)
    stub.tell("xid 1 79", "lost 1")

    assert nvml.wait_event(0.1) == Event(uuid="", xid=79)


def test_events_not_supported(nvml: RealNvml, stub: Stub) -> None:
    """A GPU without events is no failure; a GPU that fails is."""
    stub.tell(f"fail nvmlDeviceRegisterEvents {pynvml.NVML_ERROR_NOT_SUPPORTED} 1")
    assert not nvml.register_events(WHOLE)
    assert nvml.register_events(SPLIT)

    stub.tell("lost 1")
    with pytest.raises(GpuLost, match="GPU 1"):
        nvml.register_events(WHOLE)


def test_waiting_fails(nvml: RealNvml, stub: Stub) -> None:
    """Whoever waits is told, whether the library failed or nothing can come."""
    with pytest.raises(DeviceError, match="no GPU's events are registered"):
        nvml.wait_event(0.1)
    nvml.register_events(WHOLE)
    stub.tell(f"waitfail {pynvml.NVML_ERROR_UNKNOWN} 1")
    with pytest.raises(DeviceError, match="waiting for events"):
        nvml.wait_event(0.1)
    assert nvml.wait_event(0) is None


def test_stopped_while_somebody_waits(nvml: RealNvml) -> None:
    """What the library waits on is not taken away under it: stop comes after the wait."""
    nvml.register_events(WHOLE)
    found: list[Event | None] = []
    waiting = threading.Thread(target=lambda: found.append(nvml.wait_event(0.2)))
    waiting.start()
    while not nvml._waiting.locked():
        pass

    nvml.stop()

    assert found == [None]
    waiting.join()


def test_topology(nvml: RealNvml) -> None:
    """Active links, and what is at their other end."""
    assert nvml.ancestor(0, 1) is Ancestor.NUMA_NODE
    assert nvml.nvlinks(0) == (
        NvLink(remote_bus_id="0000:3c:00.0"),
        NvLink(remote_bus_id="0000:c5:00.0", to_switch=True),
    )


def test_no_nvlink(nvml: RealNvml, stub: Stub) -> None:
    """A GPU without NVLink has no links."""
    nvml.stop()
    stub.describe("gpu T4\n")
    nvml.start()

    assert nvml.nvlinks(0) == ()


def test_processes(nvml: RealNvml, stub: Stub) -> None:
    """Processes with their memory, where it is told; of a divided GPU, those of all its instances."""
    stub.tell("process 1 7 512", "process 1 8 -1", "process 0 9 64 7")

    assert nvml.processes(WHOLE) == (Process(pid=7, memory_mib=512), Process(pid=8))
    assert nvml.processes(SPLIT) == (Process(pid=9, memory_mib=64),)


def test_a_description_that_makes_no_sense(stub: Stub, capfd: pytest.CaptureFixture[str]) -> None:
    """The stand-in does not run a test on another node than its author meant."""
    stub.describe("driver 1.2\ngpu T5000\n")

    with pytest.raises(DeviceError):
        RealNvml().start()
    assert "line 2 (gpu) makes no sense" in capfd.readouterr().err


def test_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On a machine without a C compiler the suite says what to do; it does not pass over what it cannot prove."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)

    with pytest.raises(AssertionError, match=r"no C compiler: .*apt-get install gcc"):
        build_library.__wrapped__()
