"""A driver's installation below a directory: libraries, programs and device nodes, as the recorded cases had them."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path

VERSION = "550.90.07"
FOLDER = "usr/lib/x86_64-linux-gnu"
CONTROL_NODES = {
    "/dev/nvidiactl": (195, 255),
    "/dev/nvidia-modeset": (195, 254),
    "/dev/nvidia-uvm": (510, 0),
    "/dev/nvidia-uvm-tools": (510, 1),
}
_LIBRARIES = (
    "libcuda", "libcudadebugger", "libnvidia-cfg", "libnvidia-nvvm", "libnvidia-opencl", "libnvidia-ptxjitcompiler",
)  # fmt: skip
_PROGRAMS = (
    "nvidia-cuda-mps-control", "nvidia-cuda-mps-server", "nvidia-debugdump", "nvidia-persistenced", "nvidia-smi",
)  # fmt: skip


def install_driver(root: Path, version: str = VERSION) -> None:
    """Libraries and programs; only one of the libraries is a real one, as in the recorded cases."""
    for folder in (root / FOLDER, root / "usr/bin"):
        folder.mkdir(parents=True, exist_ok=True)
    for name in _LIBRARIES:
        (root / FOLDER / f"{name}.so.{version}").touch()
        (root / FOLDER / f"{name}.so.1").symlink_to(f"{name}.so.{version}")
    (root / FOLDER / f"libnvidia-ml.so.{version}").write_bytes(build_library("libnvidia-ml.so.1"))
    (root / FOLDER / "libnvidia-ml.so.1").symlink_to(f"libnvidia-ml.so.{version}")
    for name in _PROGRAMS:
        (root / "usr/bin" / name).touch(mode=0o755)


def make_nodes(root: Path, nodes: Mapping[str, tuple[int, int]]) -> bool:
    """Makes device nodes with these numbers; where one may not, plain files in their place, and says False."""
    are_real = True
    for path, (major, minor) in nodes.items():
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.mknod(place, 0o20666, os.makedev(major, minor))
            place.chmod(0o666)
        except PermissionError:
            are_real = False
            place.touch()
    return are_real


def numbers_of(paths: Iterable[str]) -> dict[str, tuple[int, int]]:
    """The numbers that device nodes of GPUs and MIG capabilities have on the recorded nodes."""
    caps = "/dev/nvidia-caps/nvidia-cap"
    return {
        path: (235, int(path.removeprefix(caps)))
        if path.startswith(caps)
        else (195, int(path.removeprefix("/dev/nvidia")))
        for path in paths
    }


def build_library(soname: str, *, name_at: int = 1) -> bytes:
    """The smallest shared library that says under which name it is to be loaded. `name_at`: place in its string table."""
    strings = b"\0" * name_at + soname.encode() + b"\0"
    headers, dynamic = 64, 64 + 2 * 56
    table = dynamic + 4 * 16
    total = table + len(strings)
    base = 0x1000  # addresses are not places in the file
    entries = ((14, name_at), (5, base + table), (10, len(strings)), (0, 0))
    return b"".join(
        (
            b"\x7fELF\x02\x01\x01" + bytes(9),
            struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, headers, 0, 0, 64, 56, 2, 0, 0, 0),
            struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, total, total, 0x1000),
            struct.pack("<IIQQQQQQ", 2, 4, dynamic, base + dynamic, base + dynamic, 4 * 16, 4 * 16, 8),
            *(struct.pack("<QQ", *entry) for entry in entries),
            strings,
        )
    )
