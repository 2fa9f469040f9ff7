"""Nodes in the language of the recorded cases: as a simulated driver, and as the files that a host would have.

One statement a line: `driver V`, `cuda 12040`, `gpu MODEL key=value ...`, `gpus N MODEL ...`, `mig GPU PROFILE [COUNT]`,
`nvlink I J N`, `nvlink I|* switch N`, `fabric HEX32 CLIQUE`. Used by the conformance tests.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gpushare.domain.devices import GPU
from gpushare.nvml.simulated import SimulatedNvml

CONTROL_DEVICES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")
_MIG_SEED = 900_000
_MASK = 0xFFFF_FFFF
_VGPU_NONE = b"\xde\x10" + bytes(254)


@dataclass
class FakeMachine:
    """A host of files that are given."""

    files: dict[str, bytes] = field(default_factory=dict)

    def read_bytes(self, path: str) -> bytes | None:
        return self.files.get(path)

    def names(self, path: str) -> tuple[str, ...]:
        prefix = path.rstrip("/") + "/"
        below = (name.removeprefix(prefix) for name in self.files if name.startswith(prefix))
        return tuple(sorted({name.split("/")[0] for name in below}))

    def write(self, root: Path) -> None:
        """The same files below a root, for what reads a host through `host.files`."""
        for path, content in self.files.items():
            place = root / path.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)


class BareNvml(SimulatedNvml):
    """A simulated driver that leaves to the host what a real one does."""

    def gpu(self, index: int) -> GPU:
        gpu = super().gpu(index)
        mig = tuple(replace(instance, paths=()) for instance in gpu.mig)
        return replace(gpu, numa_node=None, pci_class=None, paths=(), mig=mig)


def recorded_uuid(prefix: str, seed: int) -> str:
    """The UUID that the recorded cases give to the device with this number."""
    a, b, c, d = (_mixed(seed * 4 + part) for part in (1, 2, 3, 4))
    head = f"{prefix}-{a:08x}-{b >> 16:04x}-{b & 0xFFF | 0x5000:04x}"
    return f"{head}-{c >> 16 & 0x3FFF | 0x8000:04x}-{c & 0xFFFF:04x}{d:08x}"


def _mixed(number: int) -> int:
    number ^= number >> 16
    number = number * 0x7FEB352D & _MASK
    number ^= number >> 15
    number = number * 0x846CA68B & _MASK
    return number ^ number >> 16


def read_node(text: str) -> dict[str, Any]:
    """The description as `SimulatedNvml.from_mapping` takes it."""
    mapping: dict[str, Any] = {"driver": {}, "gpus": []}
    for line in text.splitlines():
        words = line.split("#")[0].split()
        if words:
            _STATEMENTS[words[0]](mapping, words[1:])
    return mapping


def _gpu(mapping: dict[str, Any], words: list[str]) -> None:
    options = dict(word.split("=", 1) for word in words[1:])
    index = len(mapping["gpus"])
    entry: dict[str, Any] = {"model": words[0], "uuid": options.get("uuid", recorded_uuid("GPU", 1000 + index))}
    entry |= {key: int(options[key], 0) for key in ("minor", "board", "class") if key in options}
    entry |= {ours: int(options[theirs]) for theirs, ours in (("sw", "switch"), ("mem", "memory")) if theirs in options}
    if int(options.get("numa", -1)) >= 0:
        entry["numa"] = int(options["numa"])
    entry |= {"bus": options["bus"]} if "bus" in options else {}
    entry |= {"name": options["name"].replace("_", " ")} if "name" in options else {}
    entry |= {"mig": []} if options.get("mig") == "on" else {}
    mapping["gpus"].append(entry)


def _gpus(mapping: dict[str, Any], words: list[str]) -> None:
    for _ in range(int(words[0])):
        _gpu(mapping, words[1:])


def _mig(mapping: dict[str, Any], words: list[str]) -> None:
    index = int(words[0])
    instances = mapping["gpus"][index]["mig"]
    for _ in range(int(words[2]) if len(words) > 2 else 1):
        uuid = recorded_uuid("MIG", _MIG_SEED + index * 64 + len(instances))
        instances.append({"profile": words[1], "uuid": uuid})


def _nvlink(mapping: dict[str, Any], words: list[str]) -> None:
    for index, entry in enumerate(mapping["gpus"]):
        if words[0] in ("*", str(index)):
            peer = "switch" if words[1] == "switch" else int(words[1])
            entry.setdefault("nvlink", {})[peer] = int(words[2])


def _fabric(mapping: dict[str, Any], words: list[str]) -> None:
    mapping["driver"]["fabric"] = {"cluster": words[0], "clique": int(words[1])}


def _cuda(mapping: dict[str, Any], words: list[str]) -> None:
    mapping["driver"]["cuda"] = f"{int(words[0]) // 1000}.{int(words[0]) % 1000 // 10}"


_STATEMENTS = {
    "driver": lambda mapping, words: mapping["driver"].update(version=words[0]),
    "nvml": lambda _mapping, _words: None,
    "cuda": _cuda,
    "gpu": _gpu,
    "gpus": _gpus,
    "mig": _mig,
    "nvlink": _nvlink,
    "fabric": _fabric,
}


def build_nvml(text: str) -> BareNvml:
    """The driver of a described node, started."""
    nvml = BareNvml.from_mapping(read_node(text))
    nvml.start()
    return nvml


def build_machine(text: str) -> FakeMachine:
    """The files of a described node: sysfs of its GPUs, the minors of MIG capability devices, the name of the machine."""
    full = SimulatedNvml.from_mapping(read_node(text))
    full.start()
    files = {"/sys/class/dmi/id/product_name": b"FAKE-SERVER-1\n"}
    minors = ["config 1", "monitor 2"]
    for index in range(full.count()):
        gpu = full.gpu(index)
        folder = f"/sys/bus/pci/devices/{gpu.bus_id}"
        files[f"{folder}/vendor"] = b"0x10de\n"
        files[f"{folder}/class"] = f"{gpu.pci_class:#08x}\n".encode()
        files[f"{folder}/numa_node"] = f"{gpu.numa_node if gpu.numa_node is not None else -1}\n".encode()
        files[f"{folder}/config"] = _VGPU_NONE
        for instance in range(15):
            first = 3 + gpu.minor * 135 + instance * 9
            minors.append(f"gpu{gpu.minor}/gi{instance}/access {first}")
            minors += [f"gpu{gpu.minor}/gi{instance}/ci{number}/access {first + 1 + number}" for number in range(8)]
    files["/proc/driver/nvidia-caps/mig-minors"] = ("\n".join(minors) + "\n").encode()
    return FakeMachine(files)
