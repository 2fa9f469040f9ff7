"""What is asked of the NVIDIA driver. `real` asks the library, `simulated` a description; the agent knows only this.

Synchronous: calls may take long, so that whoever has an event loop calls from a thread. After `start` every method may be
called from any thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from gpushare.domain.devices import GPU
from gpushare.domain.links import Ancestor
from gpushare.errors import DeviceError


class DriverUnavailable(DeviceError):  # noqa: N818 - the state is the name, as in `errors`
    """No library, no driver, or versions that do not fit: nothing can be asked of any GPU."""


class GpuLost(DeviceError):  # noqa: N818
    """The GPU has fallen off the bus."""


class NotSupported(DeviceError):  # noqa: N818
    """This GPU, or this driver, cannot do what was asked."""


class EventKind(StrEnum):
    """What a GPU reports by itself."""

    XID = "xid"
    DOUBLE_BIT_ECC = "double-bit-ecc"
    SINGLE_BIT_ECC = "single-bit-ecc"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One report of a GPU."""

    uuid: str
    """The physical GPU; empty where that could not be read: it may be any."""
    kind: EventKind = EventKind.XID
    xid: int = 0
    gpu_instance: int | None = None
    """The GPU instance that it is about; None: the whole GPU."""
    compute_instance: int | None = None


class Recovery(StrEnum):
    """What the driver asks for before a GPU works as it should."""

    NONE = "none"
    RESET = "reset"
    DRAIN_AND_RESET = "drain-and-reset"
    DRAIN_P2P = "drain-p2p"
    REBOOT = "reboot"
    OTHER = "other"
    """Something that this version has no word for."""

    @property
    def advice(self) -> str:
        """For people; empty where nothing is to be done."""
        return _ADVICE[self]


_ADVICE = {
    Recovery.NONE: "",
    Recovery.RESET: "the driver asks for a reset of the GPU",
    Recovery.DRAIN_AND_RESET: "the driver asks to let no new program onto the GPU, and to reset it then",
    Recovery.DRAIN_P2P: "the driver asks to end the programs that reach other GPUs from this one",
    Recovery.REBOOT: "the driver asks for a reboot of the node",
    Recovery.OTHER: "the driver asks for a repair: see nvidia-smi -q",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NvLink:
    """One active NVLink of a GPU."""

    remote_bus_id: str
    """In the form of `GPU.bus_id`; that of a switch, where it leads to one."""
    to_switch: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process that computes on a GPU."""

    pid: int
    memory_mib: int | None = None
    """None: the driver does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """The driver as a whole."""

    version: str
    cuda_version: tuple[int, int] | None = None


class Nvml(Protocol):
    """The driver's door. Every method but `stop` raises `DeviceError` or one of the three above."""

    def start(self) -> None:
        """Connects to the driver; again after `stop`, or when the driver was replaced. Does nothing when connected."""
        ...

    def stop(self) -> None:
        """Disconnects. Never raises; safe to call twice."""
        ...

    def driver(self) -> Driver:
        """Versions."""
        ...

    def count(self) -> int:
        """Number of GPUs; they have the indices below it."""
        ...

    def gpu(self, index: int) -> GPU:
        """All that the driver tells about one GPU and its MIG instances.

        What a driver may not tell stays at its default: NUMA node, PCI class, device nodes. Discovery asks the host.
        """
        ...

    def register_events(self, index: int) -> bool:
        """From now on `wait_event` hears of this GPU. False: the GPU cannot report events."""
        ...

    def wait_event(self, timeout: float) -> Event | None:
        """The next event of a registered GPU, or None after so many seconds."""
        ...

    def recovery(self, index: int) -> Recovery | None:
        """What the driver asks for to make this GPU well; None where it does not tell."""
        ...

    def ancestor(self, index: int, other: int) -> Ancestor:
        """Where the two GPUs meet in the PCI tree."""
        ...

    def nvlinks(self, index: int) -> tuple[NvLink, ...]:
        """Active NVLinks of one GPU; none where it has no NVLink at all."""
        ...

    def processes(self, index: int) -> tuple[Process, ...]:
        """Processes that compute on one GPU, those on its MIG instances too."""
        ...
