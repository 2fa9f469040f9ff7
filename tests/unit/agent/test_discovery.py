"""What a node has, from the driver and the host together."""

from __future__ import annotations

import pytest

from gpushare.agent.discovery import read_facts, read_inventory, with_lost
from gpushare.domain.devices import GPU, Inventory
from gpushare.errors import DeviceError, Problem
from gpushare.labels import HostFacts
from gpushare.nvml.port import DriverUnavailable
from support.described_nodes import BareNvml, FakeMachine, build_machine, build_nvml
from support.inventories import gpu, node, t4s

T4S = "driver 550.90.07\ncuda 12040\ngpu T4 bus=0000:3b:00.0 numa=0\ngpu T4 bus=0000:5e:00.0 minor=7\n"
SPLIT = "gpu A100-40GB bus=0000:07:00.0 numa=3 mig=on\nmig 0 1g.5gb 2\n"


def test_gpus() -> None:
    """The driver's figures, and what sysfs knows of the same devices."""
    inventory = read_inventory(build_nvml(T4S), build_machine(T4S))

    assert (inventory.driver_version, inventory.cuda_version, inventory.problems) == ("550.90.07", (12, 4), ())
    assert [(gpu.numa_node, gpu.pci_class, gpu.paths) for gpu in inventory.gpus] == [
        (0, 0x030200, ("/dev/nvidia0",)),
        (None, 0x030200, ("/dev/nvidia7",)),
    ]


def test_mig_instances() -> None:
    """An instance needs its GPU's node and two capability nodes, whose numbers the driver's list has."""
    inventory = read_inventory(build_nvml(SPLIT), build_machine(SPLIT))

    assert [mig.paths for mig in inventory.gpus[0].mig] == [
        ("/dev/nvidia0", f"/dev/nvidia-caps/nvidia-cap{first}", f"/dev/nvidia-caps/nvidia-cap{first + 1}")
        for first in (3 + 7 * 9, 3 + 8 * 9)
    ]


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({}, id="nothing"),
        pytest.param(
            {
                "/sys/bus/pci/devices/0000:3b:00.0/numa_node": b"many\n",
                "/sys/bus/pci/devices/0000:3b:00.0/class": b"\xff\xfe",
            },
            id="nonsense",
        ),
    ],
)
def test_a_host_that_tells_nothing(files: dict[str, bytes]) -> None:
    """What only labels and hints need is left open."""
    inventory = read_inventory(build_nvml(T4S), FakeMachine(files))

    assert [(gpu.numa_node, gpu.pci_class) for gpu in inventory.gpus] == [(None, None)] * 2
    assert inventory.problems == ()


def test_no_capability_devices() -> None:
    """Instances are served, and what a container may miss is told for each."""
    inventory = read_inventory(build_nvml(SPLIT), FakeMachine())

    assert [mig.paths for mig in inventory.gpus[0].mig] == [("/dev/nvidia0",)] * 2
    assert [problem.path for problem in inventory.problems] == ["gpus[0].mig[0]", "gpus[0].mig[1]"]


def test_one_lost_gpu() -> None:
    """The others are read, under their own indices."""
    nvml = build_nvml(T4S)
    nvml.lose(0)

    inventory = read_inventory(nvml, build_machine(T4S))

    assert [gpu.index for gpu in inventory.gpus] == [1]
    assert [str(problem) for problem in inventory.problems] == ["gpus[0]: GPU 0 is lost"]


def test_no_driver() -> None:
    """Without a driver there is no inventory, not an empty one."""
    nvml = build_nvml(T4S)
    nvml.fail("driver not loaded")

    with pytest.raises(DriverUnavailable, match="driver not loaded"):
        read_inventory(nvml, build_machine(T4S))


def test_a_driver_that_goes_in_between() -> None:
    """A driver that is unloaded while GPUs are read is no node without GPUs."""

    class Going(BareNvml):
        def gpu(self, index: int) -> GPU:
            self.fail("driver unloaded")
            return super().gpu(index)

    nvml = Going.from_mapping({"gpus": [{"model": "T4"}]})
    nvml.start()

    with pytest.raises(DeviceError, match="driver unloaded"):
        read_inventory(nvml, FakeMachine())


VGPU = (
    b"\xde\x10".ljust(0x34, b"\0") + b"\x40".ljust(12, b"\0") + b"\x09\x00\x1bVF\x00\x16" + b"460.16".ljust(20, b"\0")
).ljust(256, b"\0")
PCI = "/sys/bus/pci/devices"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({}, HostFacts(), id="nothing known"),
        pytest.param({"/sys/class/dmi/id/product_name": b"DGX\n"}, HostFacts(machine="DGX"), id="machine"),
        pytest.param(
            {f"{PCI}/a/vendor": b"0x10de\n", f"{PCI}/a/config": bytes(256)}, HostFacts(virtual_gpus=()), id="real GPU"
        ),
        pytest.param({f"{PCI}/a/vendor": b"0x10de\n"}, HostFacts(virtual_gpus=None), id="not readable"),
        pytest.param(
            {f"{PCI}/a/vendor": b"0x10de\n", f"{PCI}/a/config": VGPU[:64]}, HostFacts(virtual_gpus=None), id="not all"
        ),
        pytest.param({f"{PCI}/a/vendor": b"0x8086\n", f"{PCI}/a/config": VGPU}, HostFacts(), id="another vendor"),
    ],
)
def test_facts(files: dict[str, bytes], expected: HostFacts) -> None:
    """What labels say of the host."""
    assert read_facts(FakeMachine(files)) == expected


def test_virtual_gpu() -> None:
    """One device that says that it is virtual."""
    facts = read_facts(FakeMachine({f"{PCI}/a/vendor": b"0x10de\n", f"{PCI}/a/config": VGPU}), timestamp=7)

    assert facts.virtual_gpus is not None
    assert [gpu.host_driver_version for gpu in facts.virtual_gpus] == ["460.16"]
    assert facts.timestamp == 7


def test_with_lost() -> None:
    """A GPU that cannot be read stays as it was; one that is gone is gone."""
    read = Inventory(gpus=(gpu(0),), problems=(Problem(path="gpus[1]", message="GPU is lost"),))

    assert with_lost(t4s(3), read).gpus == (gpu(0), gpu(1))
    assert with_lost(None, read) == read
    assert with_lost(t4s(1), node(gpu(0), gpu(1))) == t4s(2)
