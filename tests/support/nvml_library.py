"""A libnvidia-ml in Python: what pynvml calls, so that `nvml.real` is tested with the true bindings around it.

Two GPUs: 0 is an A100 in MIG mode with one instance (device 100), 1 is a T4. Entry points can be made to fail, or be missing.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

import pynvml

OK = pynvml.NVML_SUCCESS
NOT_SUPPORTED = pynvml.NVML_ERROR_NOT_SUPPORTED
MIB = 1024 * 1024
_FIRST_HANDLE = 1000
_MIG_DEVICE = 100
_MIG_POSITION = 2


class FakeLibrary:
    """Stands where pynvml has the loaded library: entry points are looked up on it by name."""

    def __init__(self) -> None:
        self.failing: dict[str, int] = {}
        """Code that an entry point returns, by its name; `name:device` for one device only."""
        self.missing: set[str] = set()
        """Entry points that this driver is too old for."""
        self.calls: list[str] = []
        self.names = {0: b"NVIDIA A100-SXM4-40GB", 1: b"Tesla T4", _MIG_DEVICE: b"NVIDIA A100-SXM4-40GB MIG 1g.5gb"}
        self.events: list[dict[str, int]] = []
        self.fabric: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Callable[..., int]:
        if name not in _ENTRY_POINTS or name in self.missing:
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            self.calls.append(name)
            code = self.failing.get(name, self.failing.get(f"{name}:{_device(arguments)}"))
            return code if code is not None else _ENTRY_POINTS[name](self, *arguments) or OK

        return call


def _nothing(*_: Any) -> None:
    """Succeeds without telling anything."""


def _text(text_of: Callable[[FakeLibrary, int], bytes]) -> Callable[..., None]:
    def entry_point(library: FakeLibrary, handle: Any, buffer: Any, _size: Any) -> None:
        buffer.value = text_of(library, _device((handle,)))

    return entry_point


def _numbers(*numbers: Callable[[int], int]) -> Callable[..., None]:
    """Writes one number a result, each made of the device."""

    def entry_point(_library: FakeLibrary, handle: Any, *results: Any) -> None:
        for number, result in zip(numbers, results, strict=True):
            result._obj.value = number(_device((handle,)))

    return entry_point


def _fields(fields_of: Callable[[int], Mapping[str, Any]]) -> Callable[..., None]:
    def entry_point(_library: FakeLibrary, handle: Any, *arguments: Any) -> None:
        _fill(arguments[-1]._obj, fields_of(_device((handle,))))

    return entry_point


def _driver_version(_library: FakeLibrary, buffer: Any, _size: Any) -> None:
    buffer.value = b"550.90.07"


def _system_number(number: int) -> Callable[..., None]:
    def entry_point(_library: FakeLibrary, result: Any) -> None:
        result._obj.value = number

    return entry_point


def _handle(_library: FakeLibrary, index: Any, result: Any) -> None:
    _point(result._obj, index.value)


def _mig_mode(_library: FakeLibrary, handle: Any, current: Any, pending: Any) -> int:
    if _device((handle,)) == 1:
        return int(NOT_SUPPORTED)
    current._obj.value = pending._obj.value = 1
    return OK


def _mig_handle(_library: FakeLibrary, _parent: Any, position: Any, result: Any) -> int:
    if position.value != _MIG_POSITION:
        return int(pynvml.NVML_ERROR_NOT_FOUND)
    _point(result._obj, _MIG_DEVICE)
    return OK


def _fabric(library: FakeLibrary, _device_handle: Any, info: Any) -> int:
    _fill(info._obj, library.fabric)
    return OK if library.fabric else int(NOT_SUPPORTED)


def _wait(library: FakeLibrary, _events: Any, data: Any, _timeout: Any) -> int:
    if not library.events:
        return int(pynvml.NVML_ERROR_TIMEOUT)
    _fill(data._obj, library.events.pop(0))
    data._obj.device = ctypes.cast(_FIRST_HANDLE + 1, type(data._obj.device))
    return OK


def _link_state(_library: FakeLibrary, _handle_of: Any, link: int, state: Any) -> int:
    if link >= 12:
        return int(pynvml.NVML_ERROR_INVALID_ARGUMENT)
    state._obj.value = int(link < 2)
    return OK


def _link_kind(_library: FakeLibrary, _handle_of: Any, link: int, kind: Any) -> None:
    kind._obj.value = 2 * link


def _processes(_library: FakeLibrary, _handle_of: Any, count: Any, processes: Any) -> int:
    if processes is None:
        return int(pynvml.NVML_ERROR_INSUFFICIENT_SIZE)
    count._obj.value = 2
    _fill(processes[0], {"pid": 7, "usedGpuMemory": 512 * MIB})
    _fill(processes[1], {"pid": 8, "usedGpuMemory": 2**64 - 1})
    return OK


def _fill(structure: Any, fields: Mapping[str, Any]) -> None:
    for name, value in fields.items():
        setattr(structure, name, value)


def _point(pointer: Any, device: int) -> None:
    """Makes the handle that the caller holds one of this device; device 0's is no null pointer."""
    ctypes.memmove(
        ctypes.byref(pointer), ctypes.byref(ctypes.c_void_p(_FIRST_HANDLE + device)), ctypes.sizeof(ctypes.c_void_p)
    )


def _device(arguments: tuple[Any, ...]) -> int:
    if not arguments or not isinstance(arguments[0], pynvml.c_nvmlDevice_t):
        return -1
    return (ctypes.cast(arguments[0], ctypes.c_void_p).value or 0) - _FIRST_HANDLE


_ENTRY_POINTS: dict[str, Callable[..., int | None]] = {
    "nvmlInitWithFlags": _nothing,
    "nvmlShutdown": _nothing,
    "nvmlSystemGetDriverVersion": _driver_version,
    "nvmlSystemGetCudaDriverVersion_v2": _system_number(12040),
    "nvmlDeviceGetCount_v2": _system_number(2),
    "nvmlDeviceGetHandleByIndex_v2": _handle,
    "nvmlDeviceGetCudaComputeCapability": _numbers(lambda device: 8 - device, lambda device: 5 * device),
    "nvmlDeviceGetUUID": _text(lambda _, device: f"GPU-{device}".encode()),
    "nvmlDeviceGetName": _text(lambda library, device: library.names[device]),
    "nvmlDeviceGetMinorNumber": _numbers(lambda device: 5 + device),
    "nvmlDeviceGetMemoryInfo": _fields(lambda _: {"total": 40960 * MIB}),
    "nvmlDeviceGetPciInfo_v3": _fields(lambda device: {"domain": 0, "bus": 0x3B + device, "device": 0}),
    "nvmlDeviceGetMigMode": _mig_mode,
    "nvmlDeviceGetMaxMigDeviceCount": _numbers(lambda _: 7),
    "nvmlDeviceGetMigDeviceHandleByIndex": _mig_handle,
    "nvmlDeviceGetAttributes_v2": _fields(
        lambda _: {
            "multiprocessorCount": 14,
            "sharedCopyEngineCount": 1,
            "gpuInstanceSliceCount": 1,
            "computeInstanceSliceCount": 1,
            "memorySizeMB": 4864,
        }
    ),
    "nvmlDeviceGetGpuInstanceId": _numbers(lambda _: 9),
    "nvmlDeviceGetComputeInstanceId": _numbers(lambda _: 0),
    "nvmlDeviceGetGpuFabricInfoV": _fabric,
    "nvmlDeviceGetGpuFabricInfo": _fabric,
    "nvmlEventSetCreate": _nothing,
    "nvmlEventSetFree": _nothing,
    "nvmlDeviceGetSupportedEventTypes": _numbers(lambda _: 0xFF),
    "nvmlDeviceRegisterEvents": _nothing,
    "nvmlEventSetWait_v2": _wait,
    "nvmlDeviceGetTopologyCommonAncestor": lambda _library, _one, _other, level: _fill(level._obj, {"value": 40}),
    "nvmlDeviceGetNvLinkState": _link_state,
    "nvmlDeviceGetNvLinkRemotePciInfo_v2": _fields(lambda _: {"domain": 0, "bus": 0xC4, "device": 0}),
    "nvmlDeviceGetNvLinkRemoteDeviceType": _link_kind,
    "nvmlDeviceGetComputeRunningProcesses_v3": _processes,
}
