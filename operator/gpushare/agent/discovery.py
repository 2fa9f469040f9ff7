"""What a node has: the driver's answers, completed from the host. Called by the agent at start and whenever devices change.

A GPU that cannot be read is left out and named in the inventory's problems; the others are not concerned.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from gpushare.domain.devices import GPU, Inventory, MigInstance
from gpushare.errors import Problem
from gpushare.nvml import reading
from gpushare.nvml.port import Nvml

if TYPE_CHECKING:
    from gpushare.labels.facts import HostFacts

_DISPLAYS: Final = ("DGX Display", "NVIDIA DGX Display")
"""Their index stays theirs: the GPUs behind them keep NVML's numbers."""
_PCI_DEVICES: Final = "/sys/bus/pci/devices"
_MIG_MINORS: Final = "/proc/driver/nvidia-caps/mig-minors"
_MACHINE: Final = "/sys/class/dmi/id/product_name"
_PCI_CONFIG_BYTES: Final = 256
_NVIDIA_VENDOR: Final = "0x10de"
_CAP: Final = re.compile(r"gpu(\d+)/gi(\d+)(?:/ci(\d+))?/access (\d+)", re.ASCII)

_Place = tuple[int, int, int | None]
"""Minor of the GPU, GPU instance, compute instance."""


class Machine(Protocol):
    """What of the host discovery reads, all below the root that it was given."""

    def read_bytes(self, path: str) -> bytes | None:
        """Content of a file; None where there is none or it cannot be read."""
        ...

    def names(self, path: str) -> tuple[str, ...]:
        """Names in a directory, sorted; none where there is no directory."""
        ...


def read_inventory(nvml: Nvml, machine: Machine) -> Inventory:
    """Reads every GPU of the node.

    Raises:
        DeviceError: the driver as a whole cannot be asked. A single GPU that cannot is a problem of the inventory.
    """
    driver = nvml.driver()
    gpus: list[GPU] = []
    problems: list[Problem] = []
    caps: Mapping[_Place, str] | None = None
    for gpu in reading.read_gpus(nvml, problems):
        if gpu.product in _DISPLAYS:
            continue
        if gpu.mig and caps is None:
            caps = _read_caps(machine)
        gpus.append(_completed(gpu, machine, caps or {}, problems))
    return Inventory(
        gpus=tuple(gpus),
        driver_version=driver.version,
        cuda_version=driver.cuda_version,
        problems=tuple(problems),
    )


def with_lost(before: Inventory | None, read: Inventory) -> Inventory:
    """What was read, and the GPUs of before that cannot be read now: one that is lost for a while is still a GPU of the node."""
    if before is None:
        return read
    unreadable = {problem.path for problem in read.problems}
    lost = [gpu for gpu in before.gpus if f"gpus[{gpu.index}]" in unreadable]
    return replace(read, gpus=tuple(sorted((*read.gpus, *lost), key=lambda gpu: gpu.index)))


def read_facts(machine: Machine, *, machine_file: str = _MACHINE, timestamp: int | None = None) -> HostFacts:
    """What labels need to know of the host."""
    # Late: an agent reads them after its first list.
    from gpushare.labels.facts import HostFacts
    from gpushare.labels.vgpu import find_virtual_gpu

    name = _read_text(machine, machine_file)
    configs = [
        machine.read_bytes(f"{_PCI_DEVICES}/{bus_id}/config")
        for bus_id in machine.names(_PCI_DEVICES)
        if _read_text(machine, f"{_PCI_DEVICES}/{bus_id}/vendor") == _NVIDIA_VENDOR
    ]
    # Without privileges the kernel gives the first 64 bytes, in which no GPU tells that it is virtual.
    whole = [config for config in configs if config is not None and len(config) >= _PCI_CONFIG_BYTES]
    virtual = [find_virtual_gpu(config) for config in whole]
    unreadable = len(virtual) < len(configs)
    return HostFacts(
        machine=name or "",
        virtual_gpus=None if unreadable else tuple(gpu for gpu in virtual if gpu is not None),
        timestamp=timestamp,
    )


def _completed(gpu: GPU, machine: Machine, caps: Mapping[_Place, str], problems: list[Problem]) -> GPU:
    folder = f"{_PCI_DEVICES}/{gpu.bus_id}"
    numa_node = gpu.numa_node
    if numa_node is None:
        number = _read_number(machine, f"{folder}/numa_node")
        # The kernel says -1 for a machine without NUMA nodes.
        numa_node = number if number is not None and number >= 0 else None
    paths = gpu.paths or (f"/dev/nvidia{gpu.minor}",)
    return replace(
        gpu,
        numa_node=numa_node,
        pci_class=gpu.pci_class if gpu.pci_class is not None else _read_number(machine, f"{folder}/class"),
        paths=paths,
        mig=tuple(replace(mig, paths=mig.paths or _mig_paths(gpu, mig, paths, caps, problems)) for mig in gpu.mig),
    )


def _mig_paths(
    gpu: GPU, mig: MigInstance, parent: tuple[str, ...], caps: Mapping[_Place, str], problems: list[Problem]
) -> tuple[str, ...]:
    places: tuple[_Place, ...] = (
        (gpu.minor, mig.gpu_instance, None),
        (gpu.minor, mig.gpu_instance, mig.compute_instance),
    )
    missing = [place for place in places if place not in caps]
    if missing:
        message = f"MIG instance {gpu.index}:{mig.index} has no capability device in {_MIG_MINORS}; is MIG set up?"
        problems.append(Problem(path=f"gpus[{gpu.index}].mig[{mig.index}]", message=message))
    return (*parent, *(caps[place] for place in places if place in caps))


def _read_caps(machine: Machine) -> Mapping[_Place, str]:
    text = _read_text(machine, _MIG_MINORS) or ""
    return {
        (int(match[1]), int(match[2]), int(match[3]) if match[3] else None): f"/dev/nvidia-caps/nvidia-cap{match[4]}"
        for match in _CAP.finditer(text)
    }


def _read_text(machine: Machine, path: str) -> str | None:
    content = machine.read_bytes(path)
    return content.decode(errors="replace").strip() if content is not None else None


def _read_number(machine: Machine, path: str) -> int | None:
    try:
        return int(_read_text(machine, path) or "", 0)
    except ValueError:
        return None
