"""The NVIDIA driver, through its own Python bindings. Used by the agent and the command line on machines with GPUs.

The only module that knows pynvml. Old drivers lack functions, and some answer with bytes that are no UTF-8: what a GPU can
live without becomes a default, everything else a `DeviceError` that says which GPU and what was asked.
"""

from __future__ import annotations

import contextlib
import ctypes
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pynvml

from gpushare.domain.devices import GPU, ComputeCapability, MigEngines, MigInstance
from gpushare.domain.links import Ancestor
from gpushare.errors import DeviceError
from gpushare.nvml.port import (
    Driver,
    DriverUnavailable,
    Event,
    EventKind,
    GpuLost,
    NotSupported,
    NvLink,
    Process,
    Recovery,
)
from gpushare.nvml.profiles import profile_name

_MIB: Final = 1024 * 1024
_NOBODY: Final = 0xFFFFFFFF
"""The instance of an event that is about the whole GPU."""
_PROFILE_IN_NAME: Final = re.compile(r" MIG ((?:\d+c\.)?\d+g\.\d+gb(?:[+-][a-z.,]+)?)$", re.ASCII)
_KINDS: Final = {
    pynvml.nvmlEventTypeXidCriticalError: EventKind.XID,
    pynvml.nvmlEventTypeDoubleBitEccError: EventKind.DOUBLE_BIT_ECC,
    pynvml.nvmlEventTypeSingleBitEccError: EventKind.SINGLE_BIT_ECC,
}
_ALL_KINDS: Final = sum(_KINDS)
_RECOVERIES: Final = {
    pynvml.NVML_GPU_RECOVERY_ACTION_NONE: Recovery.NONE,
    pynvml.NVML_GPU_RECOVERY_ACTION_GPU_RESET: Recovery.RESET,
    pynvml.NVML_GPU_RECOVERY_ACTION_BUS_RESET: Recovery.RESET,
    pynvml.NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET: Recovery.DRAIN_AND_RESET,
    pynvml.NVML_GPU_RECOVERY_ACTION_DRAIN_P2P: Recovery.DRAIN_P2P,
    pynvml.NVML_GPU_RECOVERY_ACTION_NODE_REBOOT: Recovery.REBOOT,
    pynvml.NVML_GPU_RECOVERY_ACTION_SYSTEM_REBOOT: Recovery.REBOOT,
}
_READINGS: Final = 3
"""How often a MIG layout that changes meanwhile is read."""
_ERRORS: Final = {
    pynvml.NVML_ERROR_NOT_SUPPORTED: NotSupported,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: NotSupported,
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH: NotSupported,
    pynvml.NVML_ERROR_GPU_IS_LOST: GpuLost,
    pynvml.NVML_ERROR_UNINITIALIZED: DriverUnavailable,
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: DriverUnavailable,
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: DriverUnavailable,
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: DriverUnavailable,
}


class RealNvml:
    """Implements `port.Nvml`. The library keeps one state a process, so that two of these share it."""

    def __init__(self, find_library: Callable[[], str] = str) -> None:
        """`find_library`: path of libnvidia-ml.so.1, empty where the loader has to find it by itself.

        Asked at each start: the driver may come after us.
        """
        self._find_library = find_library
        self._loaded = ""
        """The path of what was loaded last; empty: whatever the loader has found."""
        self._lock = threading.Lock()
        self._waiting = threading.Lock()
        """Held while the library waits for events: the set of them must not be freed under it."""
        self._is_started = False
        self._events: Any = None

    def start(self) -> None:
        """Loads the library and connects to the driver."""
        with self._lock:
            if self._is_started:
                return
            reason = self._load()
            with _asking(f"the NVIDIA driver cannot be used{reason}"):
                pynvml.nvmlInit()
            self._is_started = True

    def _load(self) -> str:
        """Loads the library where it is found; what speaks against it, if anything does."""
        path = self._find_library()
        if path and path != self._loaded:
            try:
                library = ctypes.CDLL(path)
            except OSError as error:
                return f" ({error})"
            # In the place of what pynvml would look for, or has from a driver that was replaced meanwhile.
            pynvml.nvmlLib = library
            pynvml._nvmlGetFunctionPointer_cache.clear()  # noqa: SLF001 - it knows no other way to another library
            self._loaded = path
        return ""

    def stop(self) -> None:
        """Disconnects, once nobody waits for an event any more."""
        with self._waiting, self._lock, contextlib.suppress(pynvml.NVMLError):
            if self._events is not None:
                events, self._events = self._events, None
                pynvml.nvmlEventSetFree(events)
            if self._is_started:
                self._is_started = False
                pynvml.nvmlShutdown()

    def driver(self) -> Driver:
        """Versions; that of CUDA is missing where the driver does not tell it."""
        with _asking("the driver does not tell its version"):
            version = _text(pynvml.nvmlSystemGetDriverVersion)
        # Whatever fails: it is for labels and people, and no GPU is less of one without.
        number = _optional(pynvml.nvmlSystemGetCudaDriverVersion_v2, default=None, whatever=True)
        # NVML packs the version as 12040 for 12.4.
        cuda = (number // 1000, number % 1000 // 10) if number else None
        return Driver(version=version, cuda_version=cuda)

    def count(self) -> int:
        """Number of GPUs."""
        with _asking("the driver does not tell the number of GPUs"):
            return int(pynvml.nvmlDeviceGetCount())

    def gpu(self, index: int) -> GPU:
        """One GPU with its MIG instances."""
        with _asking(f"GPU {index} cannot be read"):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            product = _text(pynvml.nvmlDeviceGetName, handle)
            major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
            memory_mib = _memory_mib(handle)
            mode, instances = _mig_layout(handle, memory_mib)
            return GPU(
                index=index,
                uuid=_text(pynvml.nvmlDeviceGetUUID, handle),
                product=product,
                minor=int(_optional(pynvml.nvmlDeviceGetMinorNumber, handle, default=index)),
                memory_mib=memory_mib,
                compute_capability=ComputeCapability(major=major, minor=minor),
                bus_id=_bus_id(pynvml.nvmlDeviceGetPciInfo(handle)),
                fabric_clique=_clique(handle),
                mig_capable=mode is not None,
                mig_enabled=bool(mode),
                mig=instances,
            )

    def register_events(self, index: int) -> bool:
        """Asks for XIDs and ECC errors, as far as the GPU reports them."""
        with _asking(f"GPU {index} does not take an event registration"):
            with self._lock:
                if self._events is None:
                    self._events = pynvml.nvmlEventSetCreate()
            try:
                handle = pynvml.nvmlDeviceGetHandleByIndex(index)
                mask = pynvml.nvmlDeviceGetSupportedEventTypes(handle) & _ALL_KINDS
                if mask:
                    pynvml.nvmlDeviceRegisterEvents(handle, mask, self._events)
            except pynvml.NVMLError_NotSupported:
                return False
            return bool(mask)

    def wait_event(self, timeout: float) -> Event | None:
        """Waits for the next event. Nothing can come where nothing was registered."""
        with self._waiting, _asking("waiting for events of GPUs failed"):
            if self._events is None:
                raise DeviceError("no GPU's events are registered")
            try:
                data = pynvml.nvmlEventSetWait_v2(self._events, int(timeout * 1000))
            except pynvml.NVMLError_Timeout:
                return None
        return Event(
            uuid=_optional(_text, pynvml.nvmlDeviceGetUUID, data.device, default="", whatever=True),
            kind=_KINDS.get(data.eventType, EventKind.XID),
            xid=int(data.eventData) if data.eventType == pynvml.nvmlEventTypeXidCriticalError else 0,
            gpu_instance=None if data.gpuInstanceId == _NOBODY else int(data.gpuInstanceId),
            compute_instance=None if data.computeInstanceId == _NOBODY else int(data.computeInstanceId),
        )

    def recovery(self, index: int) -> Recovery | None:
        """What the driver asks for; drivers before 570 do not tell."""
        with _asking(f"the driver does not tell how GPU {index} recovers"):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            fields = [pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION]
            found = _optional(pynvml.nvmlDeviceGetFieldValues, handle, fields, default=())
        # Each field has a result of its own: an older driver knows the call, but not this field.
        if not found or found[0].nvmlReturn != pynvml.NVML_SUCCESS:
            return None
        return _RECOVERIES.get(found[0].value.uiVal, Recovery.OTHER)

    def ancestor(self, index: int, other: int) -> Ancestor:
        """Where the two GPUs meet in the PCI tree."""
        with _asking(f"the driver does not tell how GPU {index} and GPU {other} are connected"):
            one, two = pynvml.nvmlDeviceGetHandleByIndex(index), pynvml.nvmlDeviceGetHandleByIndex(other)
            return Ancestor(pynvml.nvmlDeviceGetTopologyCommonAncestor(one, two))

    def nvlinks(self, index: int) -> tuple[NvLink, ...]:
        """Active links, in the order of their numbers."""
        with _asking(f"the NVLinks of GPU {index} cannot be read"):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            return tuple(_links(handle))

    def processes(self, index: int) -> tuple[Process, ...]:
        """Processes that compute; with MIG on, those of each instance."""
        with _asking(f"the processes of GPU {index} cannot be read"):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            handles = list(_mig_handles(handle).values()) if _mig_mode(handle) else [handle]
            found = [process for each in handles for process in pynvml.nvmlDeviceGetComputeRunningProcesses(each)]
        return tuple(
            Process(
                pid=int(process.pid),
                memory_mib=process.usedGpuMemory // _MIB if process.usedGpuMemory is not None else None,
            )
            for process in found
        )


@contextlib.contextmanager
def _asking(what: str) -> Iterator[None]:
    """Translates failures of the library; `what` is what could not be had."""
    try:
        yield
    except pynvml.NVMLError as error:
        raise _ERRORS.get(error.value, DeviceError)(f"{what}: {error}") from None
    except pynvml.NVMLLibraryMismatchError:
        raise NotSupported(f"{what}: the driver is too old") from None
    except DeviceError as error:
        raise type(error)(f"{what}: {error}") from None


def _optional(function: Callable[..., Any], *arguments: Any, default: Any, whatever: bool = False) -> Any:
    """What the function tells, or the default where this GPU or driver cannot tell it; with `whatever`, where anything fails."""
    try:
        return function(*arguments)
    except pynvml.NVMLError as error:
        if whatever or _ERRORS.get(error.value) is NotSupported:
            return default
        raise


def _text(function: Any, *arguments: Any) -> str:
    try:
        return str(function(*arguments))
    except UnicodeDecodeError:
        # pynvml decodes strictly; what it wraps gives the bytes.
        return bytes(function.__wrapped__(*arguments)).decode(errors="replace")


def _memory_mib(handle: Any) -> int:
    memory = _optional(pynvml.nvmlDeviceGetMemoryInfo, handle, default=None)
    return int(memory.total) // _MIB if memory is not None else 0


def _bus_id(pci: Any) -> str:
    return f"{pci.domain:04x}:{pci.bus:02x}:{pci.device:02x}.0"


def _clique(handle: Any) -> str | None:
    # Whatever fails: it is for a label only.
    info = pynvml.c_nvmlGpuFabricInfoV_t()
    function = pynvml.nvmlDeviceGetGpuFabricInfoV
    if _optional(function, handle, ctypes.byref(info), default=None, whatever=True) is None:
        info = pynvml.c_nvmlGpuFabricInfo_t()
        function = pynvml.nvmlDeviceGetGpuFabricInfo
        if _optional(function, handle, ctypes.byref(info), default=None, whatever=True) is None:
            return None
    if info.state != pynvml.NVML_GPU_FABRIC_STATE_COMPLETED or info.status != pynvml.NVML_SUCCESS:
        return None
    import uuid  # late: few GPUs are in a fabric, and it takes milliseconds to load

    cluster = uuid.UUID(bytes=bytes(info.clusterUuid))
    return f"{cluster}.{info.cliqueId}" if cluster.int else None


def _mig_mode(handle: Any) -> bool | None:
    """Whether MIG is on; None where the GPU has no MIG."""
    mode = _optional(pynvml.nvmlDeviceGetMigMode, handle, default=None)
    return None if mode is None else bool(mode[0] == pynvml.NVML_DEVICE_MIG_ENABLE)


def _mig_layout(handle: Any, gpu_memory_mib: int) -> tuple[bool | None, tuple[MigInstance, ...]]:
    """The mode and the instances, of one moment: somebody may be dividing the GPU anew while it is read."""
    for _ in range(_READINGS):
        with contextlib.suppress(pynvml.NVMLError_NotFound, pynvml.NVMLError_InvalidArgument):
            mode = _mig_mode(handle)
            handles = _mig_handles(handle) if mode else {}
            instances = tuple(_instance(position, mig, gpu_memory_mib) for position, mig in handles.items())
            if not mode or (_mig_mode(handle), _mig_uuids(handle)) == (mode, [mig.uuid for mig in instances]):
                return mode, instances
    raise DeviceError("its MIG layout keeps changing")


def _mig_handles(handle: Any) -> Mapping[int, Any]:
    """Handles of the instances by position; there may be none at some positions."""
    handles: dict[int, Any] = {}
    for position in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        with contextlib.suppress(pynvml.NVMLError_NotFound, pynvml.NVMLError_InvalidArgument):
            handles[position] = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, position)
    return handles


def _mig_uuids(handle: Any) -> list[str]:
    return [_text(pynvml.nvmlDeviceGetUUID, mig) for mig in _mig_handles(handle).values()]


def _instance(position: int, handle: Any, gpu_memory_mib: int) -> MigInstance:
    attributes = pynvml.nvmlDeviceGetAttributes_v2(handle)
    gpu_slices, compute_slices = int(attributes.gpuInstanceSliceCount), int(attributes.computeInstanceSliceCount)
    named = _PROFILE_IN_NAME.search(_optional(_text, pynvml.nvmlDeviceGetName, handle, default=""))
    return MigInstance(
        index=position,
        uuid=_text(pynvml.nvmlDeviceGetUUID, handle),
        profile=named[1]
        if named
        else profile_name(
            gpu_slices=gpu_slices,
            compute_slices=compute_slices,
            memory_mib=int(attributes.memorySizeMB),
            gpu_memory_mib=gpu_memory_mib,
        ),
        gpu_instance=int(pynvml.nvmlDeviceGetGpuInstanceId(handle)),
        compute_instance=int(pynvml.nvmlDeviceGetComputeInstanceId(handle)),
        memory_mib=int(attributes.memorySizeMB),
        multiprocessors=int(attributes.multiprocessorCount),
        gpu_slices=gpu_slices,
        compute_slices=compute_slices,
        engines=MigEngines(
            copy=int(attributes.sharedCopyEngineCount),
            decoder=int(attributes.sharedDecoderCount),
            encoder=int(attributes.sharedEncoderCount),
            jpeg=int(attributes.sharedJpegCount),
            ofa=int(attributes.sharedOfaCount),
        ),
    )


def _links(handle: Any) -> Iterator[NvLink]:
    for number in range(pynvml.NVML_NVLINK_MAX_LINKS):
        try:
            if pynvml.nvmlDeviceGetNvLinkState(handle, number) != pynvml.NVML_FEATURE_ENABLED:
                continue
            pci = pynvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, number)
        except (pynvml.NVMLError_NotSupported, pynvml.NVMLError_InvalidArgument):
            continue
        kind = _optional(pynvml.nvmlDeviceGetNvLinkRemoteDeviceType, handle, number, default=None)
        yield NvLink(remote_bus_id=_bus_id(pci), to_switch=kind == pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH)
