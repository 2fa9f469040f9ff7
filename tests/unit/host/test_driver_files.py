"""What a machine has of the driver."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpushare.host.driver_files import Wanted, read_driver_files
from gpushare.host.driver_roots import Place, find_device_root, find_library, find_root
from gpushare.host.files import HostFiles
from gpushare.sharing.cdi import Extra, Library, Node
from support.driver_roots import CONTROL_NODES, FOLDER, VERSION, build_library, install_driver, make_nodes

HOST = Place(seen="/", on_host="/")


def touch(root: Path, *paths: str) -> None:
    for path in paths:
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()


@pytest.mark.parametrize(
    ("installed", "said", "expected"),
    [
        pytest.param(
            ["driver-root"], (None, "/run/driver"), ("/driver-root", "/run/driver"), id="where it is usually seen"
        ),
        pytest.param(["host"], (None, "/run/driver"), ("/host", "/"), id="part of the host"),
        pytest.param(["host", "driver-root"], (None, None), ("/driver-root", "/"), id="its own root first"),
        pytest.param(["host"], ("/driver-root", None), ("/driver-root", "/"), id="what is said counts"),
        pytest.param([], (None, "/run/driver"), ("/driver-root", "/run/driver"), id="nowhere yet"),
    ],
)
def test_root(
    tmp_path: Path, installed: list[str], said: tuple[str | None, str | None], expected: tuple[str, str]
) -> None:
    """One place in both views."""
    for folder in installed:
        install_driver(tmp_path / folder)

    assert find_root(HostFiles(tmp_path), *said) == Place(seen=expected[0], on_host=expected[1])


def test_library(tmp_path: Path) -> None:
    """The first place that has it."""
    touch(tmp_path, "r/lib64/libnvidia-ml.so.1", "r/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1")

    found = find_library(HostFiles(tmp_path), Place(seen="/r/", on_host="/"))

    assert found == tmp_path / "r/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1"
    assert find_library(HostFiles(tmp_path), HOST) is None


@pytest.mark.parametrize(
    ("there", "said", "expected"),
    [
        pytest.param([], "", ("", "/run/driver"), id="taken to be where the driver is"),
        pytest.param([], "/d", ("", "/d"), id="what is said counts"),
        pytest.param(["/driver-root/dev/nvidiactl"], "", ("/driver-root", "/run/driver"), id="the driver's own"),
        pytest.param(["/driver-root/dev/null"], "", ("", "/run/driver"), id="the driver's own, without nodes"),
        pytest.param(["/driver-root/dev/nvidiactl", "/host/x"], "", ("/driver-root", "/run/driver"), id="seen in both"),
        pytest.param(["/host/dev/nvidiactl"], "", ("", "/"), id="seen on the host, not there"),
        pytest.param(["/host/run/driver/dev/nvidiactl"], "", ("", "/run/driver"), id="seen on the host, there"),
    ],
)
def test_device_root(tmp_path: Path, there: list[str], said: str, expected: tuple[str, str]) -> None:
    """Where device nodes are, in both views."""
    touch(tmp_path, *there)
    root = Place(seen="/driver-root", on_host="/run/driver")

    assert find_device_root(HostFiles(tmp_path), root, said) == Place(seen=expected[0], on_host=expected[1])


def test_libraries_and_programs(tmp_path: Path) -> None:
    """Those of this version in the folder that has libcuda, and no others."""
    install_driver(tmp_path / "r")
    touch(tmp_path, f"r/{FOLDER}/libother.so.1", "r/usr/lib64/libnvidia-old.so.1.2", "r/usr/bin/other")
    (tmp_path / "r" / FOLDER / f"libfolder.so.{VERSION}").mkdir()
    (tmp_path / "r/usr/bin/nvidia-smi").rename(tmp_path / "r/usr/nvidia-smi")
    (tmp_path / "r/sbin").mkdir()
    (tmp_path / "r/usr/nvidia-smi").rename(tmp_path / "r/sbin/nvidia-smi")

    found = read_driver_files(
        HostFiles(tmp_path), Place(seen="/r", on_host="/run/driver"), HOST, Wanted(version=VERSION)
    )

    assert (found.version, found.root, found.dev_root) == (VERSION, "/run/driver", "/")
    assert [library.path.rpartition("/")[2] for library in found.libraries] == [
        f"{name}.so.{VERSION}"
        for name in (
            "libcuda", "libcudadebugger", "libnvidia-cfg", "libnvidia-ml", "libnvidia-nvvm", "libnvidia-opencl",
            "libnvidia-ptxjitcompiler",
        )
    ]  # fmt: skip
    assert Library(path=f"/{FOLDER}/libnvidia-ml.so.{VERSION}", soname="libnvidia-ml.so.1") in found.libraries
    assert found.programs == (
        "/usr/bin/nvidia-cuda-mps-control",
        "/usr/bin/nvidia-cuda-mps-server",
        "/usr/bin/nvidia-debugdump",
        "/usr/bin/nvidia-persistenced",
        "/sbin/nvidia-smi",
    )


def test_another_version(tmp_path: Path) -> None:
    """A driver that was replaced and not yet loaded: nothing of it fits."""
    install_driver(tmp_path, version="560.1")

    assert read_driver_files(HostFiles(tmp_path), HOST, HOST, Wanted(version=VERSION)).libraries == ()


def test_library_by_link(tmp_path: Path) -> None:
    """A link to what has another name is a library as well; one that leads nowhere is none."""
    folder = tmp_path / "usr/lib64"
    folder.mkdir(parents=True)
    (folder / "real").write_bytes(build_library("libcuda.so.1"))
    (folder / "libcuda.so.1.2").symlink_to("real")
    (folder / "libgone.so.1.2").symlink_to("nothing")

    found = read_driver_files(HostFiles(tmp_path), HOST, HOST, Wanted(version="1.2"))

    assert found.libraries == (Library(path="/usr/lib64/libcuda.so.1.2", soname="libcuda.so.1"),)


def test_device_nodes(tmp_path: Path) -> None:
    """Control devices in NVIDIA's order, and of the wanted ones those that exist."""
    dev = Place(seen="/r", on_host="/run/driver")
    made = {"/dev/nvidiactl": (195, 255), "/dev/nvidia-uvm-tools": (510, 1), "/dev/nvidia0": (195, 0)}
    are_real = make_nodes(tmp_path / "r", made)
    (tmp_path / "r/dev/nvidia1").mkdir()

    wanted = Wanted(version="1", nodes=("/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia2"))
    found = read_driver_files(HostFiles(tmp_path), dev, dev, wanted)

    assert [node.path for node in found.control_nodes] == ["/dev/nvidiactl", "/dev/nvidia-uvm-tools"]
    expected = Node(path="/dev/nvidia0")
    if are_real:
        expected = Node(path="/dev/nvidia0", major=195, minor=0, mode=0o666)
    assert found.nodes == {"/dev/nvidia0": expected}


def test_channels(tmp_path: Path) -> None:
    """Below the driver's root, or in this container's `/dev`."""
    dev = Place(seen="/r", on_host="/")
    touch(
        tmp_path,
        "/r/dev/nvidiactl",
        "/r/dev/nvidia-caps-imex-channels/channel0",
        "/dev/nvidia-caps-imex-channels/channel1",
    )

    found = read_driver_files(HostFiles(tmp_path), dev, dev, Wanted(version="1", channels=(0, 1, 2)))

    assert {number: node.path.rpartition("/")[2] for number, node in found.channels.items()} == {
        0: "channel0",
        1: "channel1",
    }


def test_extras(tmp_path: Path) -> None:
    """What is switched on, as far as it is there."""
    touch(
        tmp_path, *CONTROL_NODES, "/dev/nvidia-fs1", "/dev/nvidia-fs0", "/dev/infiniband/uverbs0", "/dev/infiniband/x"
    )
    touch(tmp_path, "/dev/gdrdrv", "/etc/cufile.json", "/run/udev/control")

    found = read_driver_files(
        HostFiles(tmp_path), HOST, Place(seen="", on_host="/"), Wanted(version="1", features=("mofed", "gds"))
    )

    assert found.extras == {
        "gds": Extra(
            nodes=(Node(path="/dev/nvidia-fs0"), Node(path="/dev/nvidia-fs1")),
            paths=("/etc/cufile.json", "/run/udev"),
        ),
        "mofed": Extra(nodes=(Node(path="/dev/infiniband/uverbs0"),)),
    }
