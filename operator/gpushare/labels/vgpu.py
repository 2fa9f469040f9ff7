"""Labels of virtual GPUs, and where a vGPU says that it is one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gpushare.labels.facts import HostFacts, VirtualGpu

_CAPABILITY_LIST: Final = 0x34
"""Offset of the pointer to the first capability in the PCI configuration space."""
_VENDOR_SPECIFIC: Final = 0x09
_SIGNATURE: Final = b"VF"
_FIRST_RECORD: Final = 5
_DRIVER_RECORD: Final = 0
_VERSION_LENGTH: Final = 10


def build_labels(facts: HostFacts) -> Mapping[str, str]:
    """`vgpu.present`, and the host's driver where there is one; nothing where nobody could look."""
    if facts.virtual_gpus is None:
        return {}
    labels = {"vgpu.present": str(bool(facts.virtual_gpus)).lower()}
    for gpu in facts.virtual_gpus:
        labels["vgpu.host-driver-version"] = gpu.host_driver_version
        labels["vgpu.host-driver-branch"] = gpu.host_driver_branch
    return labels


def find_virtual_gpu(config: bytes) -> VirtualGpu | None:
    """Reads a PCI configuration space of 256 bytes or more; None where it is not that of a vGPU, or cut short."""
    capability = _vendor_capability(config)
    if capability[3:5] != _SIGNATURE:
        return None
    position = _FIRST_RECORD
    while position + 1 < len(capability) and capability[position] != _DRIVER_RECORD:
        length = capability[position + 1]
        if length == 0:
            return VirtualGpu()
        position += length
    text = capability[position + 2 : position + 2 + 2 * _VERSION_LENGTH]
    version, branch = text[:_VERSION_LENGTH], text[_VERSION_LENGTH:]
    return VirtualGpu(host_driver_version=_text(version), host_driver_branch=_text(branch))


def _vendor_capability(config: bytes) -> bytes:
    seen: set[int] = set()
    offset = config[_CAPABILITY_LIST] if len(config) > _CAPABILITY_LIST else 0
    while offset and offset not in seen and offset + 2 < len(config):
        seen.add(offset)
        if config[offset] == _VENDOR_SPECIFIC:
            return config[offset : offset + config[offset + 2]]
        offset = config[offset + 1]
    return b""


def _text(field: bytes) -> str:
    return field.split(b"\0")[0].decode("ascii", "ignore")
