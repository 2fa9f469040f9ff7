"""Device nodes that every GPU container needs besides those of its GPUs, and which loading of the driver is running.

Read by the agent: the nodes for answers to Allocate, the driver's loading to tell what a reset has mended.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from gpushare.host.files import HostFiles

CONTROL_DEVICES: Final = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")
"""In the order in which NVIDIA's device plugin lists them."""


def read_control_devices(files: HostFiles, driver_root: str) -> tuple[str, ...]:
    """Those of the control devices that exist; looked for below the driver root if that has a `/dev` of its own."""
    base = device_root(files, driver_root)
    return tuple(path for path in CONTROL_DEVICES if files.exists(base + path))


def read_imex_channels(files: HostFiles, driver_root: str, wanted: Iterable[int]) -> tuple[int, ...]:
    """Those of the wanted IMEX channels that the host has."""
    base = device_root(files, driver_root)
    return tuple(
        channel
        for channel in wanted
        if any(files.exists(f"{root}/dev/nvidia-caps-imex-channels/channel{channel}") for root in (base, ""))
    )


def device_root(files: HostFiles, driver_root: str) -> str:
    """What stands before `/dev`: the driver root as this container sees it, where it has device nodes; else nothing."""
    root = driver_root.rstrip("/")
    return root if root and files.exists(root + CONTROL_DEVICES[0]) else ""


def read_driver_load(files: HostFiles) -> str:
    """Another text each time that the machine starts or the driver's kernel module is loaded, which resets all GPUs.

    Empty where the host does not tell.
    """
    boot = files.read_text("/proc/sys/kernel/random/boot_id")
    try:
        # A module that is loaded again gets another directory.
        module = str(files.path("/sys/module/nvidia").stat().st_ino)
    except OSError:
        module = ""
    return " ".join(filter(None, ((boot or "").strip(), module)))
