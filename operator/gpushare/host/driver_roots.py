"""Where a machine's NVIDIA driver is: its root, its library, its device nodes.

Looked for each time that it is needed: a driver may be installed, or replaced, while we run. Two views of one thing: a path as
this container sees it, and the same as the host has it, which a container runtime needs. What is below the root is the
business of `driver_files`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpushare.host.devices import CONTROL_DEVICES, device_root
from gpushare.host.files import HostFiles

CONTAINER_DRIVER_ROOT: Final = "/driver-root"
"""Where a container sees the driver's root, unless something else is said."""
HOST_ROOT: Final = "/host"
"""Where our DaemonSet mounts the host's whole file system, read-only."""

_NVML: Final = "libnvidia-ml.so.1"
FOLDERS: Final = tuple(
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One directory in both views."""

    seen: str
    """Where this container sees it."""
    on_host: str


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
    candidates = (files.path(below(root.seen, f"{folder}/{_NVML}")) for folder in FOLDERS)
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
    is_there = bool(seen) or files.exists(below(HOST_ROOT, below(root.on_host, CONTROL_DEVICES[0])))
    return Place(seen=seen, on_host="/" if is_known and not is_there else root.on_host)


def below(root: str, path: str) -> str:
    """A path of a driver below its root."""
    return root.rstrip("/") + path
