"""What a node has, through the true driver bindings and the files of a host: what changes, fails and is odd."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpushare.agent.discovery import read_facts, read_inventory
from gpushare.domain.devices import Inventory
from gpushare.host.files import HostFiles
from gpushare.nvml.port import DriverUnavailable
from gpushare.nvml.real import RealNvml
from support.described_nodes import build_machine
from support.nvml_library import Stub, plugged_in, write_stub

T4S = "gpu T4 bus=0000:3b:00.0 numa=1\ngpu T4 bus=0000:5e:00.0 minor=7\n"


class Host:
    """A described host with its driver."""

    def __init__(self, root: Path, stub: Stub) -> None:
        self.root = root
        self.stub = stub
        self.nvml = RealNvml()
        self.nvml.start()

    def read(self) -> Inventory:
        return read_inventory(self.nvml, HostFiles(self.root))


@contextmanager
def host(folder: Path, node: str) -> Iterator[Host]:
    build_machine(node).write(folder / "root")
    with plugged_in(write_stub(folder, node)) as stub:
        made = Host(folder / "root", stub)
        yield made
        made.nvml.stop()


def indices(inventory: Inventory) -> list[int]:
    return [gpu.index for gpu in inventory.gpus]


def test_files_of_the_host(tmp_path: Path) -> None:
    """NUMA node, class and device nodes come from /sys and from the driver's list of capabilities, by bus and minor."""
    node = "gpu A100-40GB bus=0001:c7:00.0 numa=3 minor=2 mig=on\nmig 0 3g.20gb\n" + T4S
    with host(tmp_path, node) as made:
        gpus = made.read().gpus

    assert [(gpu.bus_id, gpu.numa_node, gpu.pci_class) for gpu in gpus] == [
        ("0001:c7:00.0", 3, 0x030200),
        ("0000:3b:00.0", 1, 0x030200),
        ("0000:5e:00.0", None, 0x030200),
    ]
    first = 3 + 2 * 135 + 1 * 9
    assert gpus[0].mig[0].paths == (
        "/dev/nvidia2",
        f"/dev/nvidia-caps/nvidia-cap{first}",
        f"/dev/nvidia-caps/nvidia-cap{first + 1}",
    )
    assert gpus[2].paths == ("/dev/nvidia7",)


def test_many_gpus(tmp_path: Path) -> None:
    """More than a tray has."""
    with host(tmp_path, "gpus 20 H100 numa=0\n") as made:
        inventory = made.read()

    assert indices(inventory) == list(range(20))
    assert len({gpu.uuid for gpu in inventory.gpus}) == 20


@pytest.mark.parametrize("name", ["DGX_Display", "NVIDIA_DGX_Display"])
def test_displays_are_left_out(tmp_path: Path, name: str) -> None:
    """The GPU behind a DGX display keeps its index."""
    with host(tmp_path, f"gpu T4 name={name}\ngpu T4\n") as made:
        inventory = made.read()

    assert (indices(inventory), inventory.problems) == ([1], ())


def test_a_gpu_that_is_lost_while_all_are_read(tmp_path: Path) -> None:
    """The others are not concerned; it is named, and is there again once it answers."""
    with host(tmp_path, "gpus 4 T4\n") as made:
        made.stub.tell("at nvmlDeviceGetMemoryInfo lost 2")
        with_loss = made.read()
        made.stub.tell("restore 2")
        afterwards = made.read()

    assert indices(with_loss) == [0, 1, 3]
    assert [problem.path for problem in with_loss.problems] == ["gpus[2]"]
    assert "GPU is lost" in with_loss.problems[0].message
    assert (indices(afterwards), afterwards.problems) == ([0, 1, 2, 3], ())


def test_mig_that_is_switched_on_and_off(tmp_path: Path) -> None:
    """Each reading tells the layout of its moment."""
    with host(tmp_path, "gpus 2 A100-40GB\n") as made:
        assert [gpu.mig_enabled for gpu in made.read().gpus] == [False, False]
        made.stub.tell("split 0 1g.5gb 2g.10gb", "split 1")
        divided = made.read()
        made.stub.tell("split 0 off", "split 1 7g.40gb")
        again = made.read()

    assert [[mig.profile for mig in gpu.mig] for gpu in divided.gpus] == [["1g.5gb", "2g.10gb"], []]
    assert [gpu.mig_enabled for gpu in divided.gpus] == [True, True]
    assert [[mig.profile for mig in gpu.mig] for gpu in again.gpus] == [[], ["7g.40gb"]]
    assert [gpu.mig_enabled for gpu in again.gpus] == [False, True]


def test_gpus_that_come_and_go(tmp_path: Path) -> None:
    """Seen by whoever connects anew, as after a driver was loaded again."""
    with host(tmp_path, "gpus 4 T4\n") as made:
        made.stub.describe("gpus 2 T4\n")
        assert indices(made.read()) == [0, 1, 2, 3]
        made.nvml.stop()
        made.nvml.start()
        assert indices(made.read()) == [0, 1]


def test_a_driver_that_goes_while_gpus_are_read(tmp_path: Path) -> None:
    """A node whose GPUs nobody knows is not one without GPUs."""
    with host(tmp_path, "gpus 2 T4\n") as made:
        made.stub.tell("at nvmlDeviceGetUUID fail nvmlDeviceGetPciInfo_v3 1")

        with pytest.raises(DriverUnavailable):
            made.read()


def test_the_machine(tmp_path: Path) -> None:
    """Its name, and that none of its GPUs is virtual."""
    with host(tmp_path, T4S) as made:
        facts = read_facts(HostFiles(made.root))

    assert (facts.machine, facts.virtual_gpus) == ("FAKE-SERVER-1", ())
