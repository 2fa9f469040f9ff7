"""What a machine has of the NVIDIA driver: where it is installed, its libraries, programs and device nodes.

Read by the agent: for CDI specifications, for device nodes in answers, and to find the library that NVML is. Two views of one
thing: a path as this container sees it, and the same as the host has it, which is what a container runtime needs.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpushare.host.devices import CONTROL_DEVICES, device_root
from gpushare.host.elf import read_soname
from gpushare.host.files import HostFiles
from gpushare.sharing.cdi import DriverFiles, Extra, Library, Node

CONTAINER_DRIVER_ROOT: Final = "/driver-root"
"""Where a container sees the driver's root, unless something else is said."""
HOST_ROOT: Final = "/host"
"""Where our DaemonSet mounts the host's whole file system, read-only."""

_NVML: Final = "libnvidia-ml.so.1"
_CUDA: Final = "libcuda.so"
_FOLDERS: Final = tuple(
    f"{above}/{folder}"
    for above in ("/usr", "")
    for folder in (
        "lib64",
        "lib/x86_64-linux-gnu",
        "lib/aarch64-linux-gnu",
        "lib/x86_64-linux-gnu/nvidia/current",
        "lib/aarch64-linux-gnu/nvidia/current",
    )
)
"""Where distributions have the driver's libraries; the places and the order of NVIDIA's device plugin."""
_PROGRAM_FOLDERS: Final = ("/usr/bin", "/usr/sbin", "/bin", "/sbin")
_PROGRAMS: Final = (
    "nvidia-cuda-mps-control",
    "nvidia-cuda-mps-server",
    "nvidia-debugdump",
    "nvidia-persistenced",
    "nvidia-smi",
)
_IMEX_CHANNELS: Final = "/dev/nvidia-caps-imex-channels/channel"
_EXTRA_NODES: Final = {
    "gdrcopy": ("/dev/gdrdrv",),
    "gds": ("/dev/nvidia-fs*",),
    "mofed": ("/dev/infiniband/rdma_cm", "/dev/infiniband/uverbs*"),
}
_EXTRA_PATHS: Final = {"gds": ("/etc/cufile.json", "/run/udev")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One directory in both views."""

    seen: str
    """Where this container sees it."""
    on_host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be found besides the driver's libraries and programs."""

    version: str
    """Of the driver: libraries carry it in their names."""
    nodes: Iterable[str] = ()
    """Device nodes of GPUs and MIG instances."""
    channels: Iterable[int] = ()
    features: Iterable[str] = ()
    """Of gdrcopy, gds, mofed."""


def find_root(files: HostFiles, seen: str | None, on_host: str | None) -> Place:
    """The driver's root.

    Args:
        files: of this container.
        seen: where somebody said that this container sees it; None: not said.
        on_host: where it is on the host; None: not said.
    """
    said = Place(seen=CONTAINER_DRIVER_ROOT if seen is None else seen, on_host=on_host or "/")
    host = Place(seen=HOST_ROOT, on_host="/")
    # A driver that is part of the host is in no directory of its own, and a DaemonSet for all nodes cannot know.
    is_elsewhere = seen is None and find_library(files, said) is None and find_library(files, host) is not None
    return host if is_elsewhere else said


def find_library(files: HostFiles, root: Place) -> Path | None:
    """The library that NVML is; None where the root has none."""
    candidates = (files.path(_below(root.seen, f"{folder}/{_NVML}")) for folder in _FOLDERS)
    return next((path for path in candidates if path.exists()), None)


def find_device_root(files: HostFiles, root: Place, said: str | None) -> Place:
    """What stands before `/dev`: the driver's root where that has device nodes of its own, else this container's.

    Args:
        files: of this container.
        root: the driver's.
        said: where somebody said that it is on the host; None or empty: not said.
    """
    seen = device_root(files, root.seen)
    if said:
        return Place(seen=seen, on_host=said)
    # Where the whole host can be seen, one can look; else the device nodes are taken to be where the driver is.
    is_known = files.exists(HOST_ROOT)
    is_there = bool(seen) or files.exists(_below(HOST_ROOT, _below(root.on_host, CONTROL_DEVICES[0])))
    return Place(seen=seen, on_host="/" if is_known and not is_there else root.on_host)


def read_driver_files(files: HostFiles, root: Place, dev: Place, wanted: Wanted) -> DriverFiles:
    """Everything that there is; without libraries where the driver is not below its root in this version."""
    nodes = (_node(files, dev, path) for path in wanted.nodes)
    channels = ((number, _channel(files, dev, number)) for number in wanted.channels)
    return DriverFiles(
        version=wanted.version,
        root=root.on_host,
        dev_root=dev.on_host,
        libraries=tuple(_libraries(files, root, wanted.version)),
        programs=tuple(_programs(files, root)),
        control_nodes=tuple(filter(None, (_node(files, dev, path) for path in CONTROL_DEVICES))),
        nodes={node.path: node for node in nodes if node is not None},
        channels={number: node for number, node in channels if node is not None},
        extras={name: _extra(files, root, dev, name) for name in sorted(wanted.features)},
    )


def _libraries(files: HostFiles, root: Place, version: str) -> Iterator[Library]:
    ending = f".so.{version}"
    for folder in _FOLDERS:
        names = files.names(_below(root.seen, folder))
        if f"{_CUDA}.{version}" in names:
            for name in names:
                path = files.path(_below(root.seen, f"{folder}/{name}"))
                if name.endswith(ending) and path.is_file():
                    yield Library(path=f"{folder}/{name}", soname=read_soname(path))
            return


def _programs(files: HostFiles, root: Place) -> Iterator[str]:
    for program in _PROGRAMS:
        paths = (f"{folder}/{program}" for folder in _PROGRAM_FOLDERS)
        found = next((path for path in paths if files.exists(_below(root.seen, path))), None)
        if found is not None:
            yield found


def _node(files: HostFiles, dev: Place, path: str) -> Node | None:
    try:
        found = files.path(_below(dev.seen, path)).stat()
    except OSError:
        return None
    if stat.S_ISDIR(found.st_mode):
        return None
    if not stat.S_ISCHR(found.st_mode):
        # Where nodes are simulated: anything that can be named.
        return Node(path=path)
    return Node(
        path=path, major=os.major(found.st_rdev), minor=os.minor(found.st_rdev), mode=stat.S_IMODE(found.st_mode)
    )


def _channel(files: HostFiles, dev: Place, number: int) -> Node | None:
    path = f"{_IMEX_CHANNELS}{number}"
    return _node(files, dev, path) or _node(files, Place(seen="", on_host=dev.on_host), path)


def _extra(files: HostFiles, root: Place, dev: Place, name: str) -> Extra:
    found = (_node(files, dev, path) for pattern in _EXTRA_NODES[name] for path in _matching(files, dev, pattern))
    paths = (path for path in _EXTRA_PATHS.get(name, ()) if files.exists(_below(root.seen, path)))
    return Extra(nodes=tuple(filter(None, found)), paths=tuple(paths))


def _matching(files: HostFiles, dev: Place, pattern: str) -> Iterator[str]:
    folder, _, beginning = pattern.rpartition("/")
    if not beginning.endswith("*"):
        yield pattern
        return
    for name in files.names(_below(dev.seen, folder)):
        if name.startswith(beginning[:-1]):
            yield f"{folder}/{name}"


def _below(root: str, path: str) -> str:
    return root.rstrip("/") + path
