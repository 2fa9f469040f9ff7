"""What an installed driver leaves on the disk of a node: device nodes, libraries and programs, as far as anybody looks at them.

Called by the sandbox for each node, when it starts and whenever its GPUs have been divided anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gpushare.errors import DeviceError
from gpushare.host.devices import CONTROL_DEVICES
from gpushare.nvml.simulated import SimulatedNvml

_LIBRARIES = "/usr/lib/x86_64-linux-gnu"
_PROGRAMS = (
    "/usr/bin/nvidia-smi",
    "/usr/bin/nvidia-ctk",
    "/usr/local/nvidia/toolkit/nvidia-cdi-hook",
)
"""The last two are the container toolkit's, as a package installs it and as NVIDIA's operator does."""


def install_driver(root: Path, nvml: SimulatedNvml) -> None:
    """Makes what is missing; nothing where the node has no driver. All files are empty: nothing here opens them."""
    for path in _paths_of(nvml):
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()


def _paths_of(nvml: SimulatedNvml) -> Iterator[str]:
    asking = nvml.connect()
    try:
        asking.start()
        version = asking.driver().version
        gpus = [asking.gpu(index) for index in range(asking.count())]
    except DeviceError:
        return
    finally:
        asking.stop()
    yield from CONTROL_DEVICES
    for gpu in gpus:
        yield from gpu.paths
        for instance in gpu.mig:
            yield from instance.paths
    yield from (f"{_LIBRARIES}/{name}.so.{version}" for name in ("libcuda", "libnvidia-ml"))
    yield f"{_LIBRARIES}/libnvidia-ml.so.1"
    yield from _PROGRAMS
