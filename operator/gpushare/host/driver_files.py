"""What a machine has of the NVIDIA driver below its root: libraries, programs and device nodes.

Read by the agent for CDI specifications.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from gpushare.host.devices import CONTROL_DEVICES
from gpushare.host.driver_roots import FOLDERS, Place, below
from gpushare.host.elf import read_soname
from gpushare.host.files import HostFiles
from gpushare.sharing.cdi import DriverFiles, Extra, Library, Node

_CUDA: Final = "libcuda.so"
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
class Wanted:
    """What is to be found besides the driver's libraries and programs."""

    version: str
    """Of the driver: libraries carry it in their names."""
    nodes: Iterable[str] = ()
    """Device nodes of GPUs and MIG instances."""
    channels: Iterable[int] = ()
    features: Iterable[str] = ()
    """Of gdrcopy, gds, mofed."""


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
    for folder in FOLDERS:
        names = files.names(below(root.seen, folder))
        if f"{_CUDA}.{version}" in names:
            for name in names:
                path = files.path(below(root.seen, f"{folder}/{name}"))
                if name.endswith(ending) and path.is_file():
                    yield Library(path=f"{folder}/{name}", soname=read_soname(path))
            return


def _programs(files: HostFiles, root: Place) -> Iterator[str]:
    for program in _PROGRAMS:
        paths = (f"{folder}/{program}" for folder in _PROGRAM_FOLDERS)
        found = next((path for path in paths if files.exists(below(root.seen, path))), None)
        if found is not None:
            yield found


def _node(files: HostFiles, dev: Place, path: str) -> Node | None:
    try:
        found = files.path(below(dev.seen, path)).stat()
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
    paths = (path for path in _EXTRA_PATHS.get(name, ()) if files.exists(below(root.seen, path)))
    return Extra(nodes=tuple(filter(None, found)), paths=tuple(paths))


def _matching(files: HostFiles, dev: Place, pattern: str) -> Iterator[str]:
    folder, _, beginning = pattern.rpartition("/")
    if not beginning.endswith("*"):
        yield pattern
        return
    for name in files.names(below(dev.seen, folder)):
        if name.startswith(beginning[:-1]):
            yield f"{folder}/{name}"
