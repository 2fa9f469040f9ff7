"""A driver that a description stands for: any GPUs, on machines that have none. Used by the sandbox and by tests.

Differs from the real library in one thing that matters: it tells NUMA nodes, PCI classes and device nodes too, since there is
no host behind it that could be asked.
"""

from __future__ import annotations

import copy
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from gpushare.domain.devices import GPU
from gpushare.domain.links import Ancestor
from gpushare.nvml import describing
from gpushare.nvml.port import Driver, DriverUnavailable, Event, GpuLost, NvLink, Process, Recovery

_PLACES: Final = {
    "board": Ancestor.BOARD,
    "switch": Ancestor.SWITCH,
    "switches": Ancestor.SWITCHES,
    "bridge": Ancestor.HOST_BRIDGE,
}
"""From the closest to the farthest."""
_NO_DRIVER: Final = "the NVIDIA driver cannot be used: NVML Shared Library Not Found"
"""In the words of the real one."""
_SWITCH_BUS_IDS: Final = tuple(f"0000:{number:02x}:00.0" for number in range(0xC4, 0xCA))


@dataclass(slots=True, eq=False)
class _Connection:
    """What the driver knows of one process."""

    registered: set[str] = field(default_factory=set)
    events: deque[Event] = field(default_factory=deque)


@dataclass(slots=True, eq=False)
class _Machine:
    """What all processes of one machine have in common."""

    driver: Driver
    gpus: list[describing.Described]
    seed: str
    failure: str = ""
    lost: set[int] = field(default_factory=set)
    recoveries: dict[int, Recovery] = field(default_factory=dict)
    connected: set[_Connection] = field(default_factory=set)
    lock: threading.Condition = field(default_factory=threading.Condition)
    """Held for everything below it, and signalled when something happens."""


class SimulatedNvml:
    """Implements `port.Nvml`, and lets whoever holds it break and mend things. Safe from any thread.

    Each is the driver as one process has it, with a connection and events of its own; `connect` gives the next one.
    """

    def __init__(self, description: describing.Description, *, seed: str = "") -> None:
        self._machine = _Machine(driver=description.driver, gpus=list(description.gpus), seed=seed)
        self._connection = _Connection()

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any], *, seed: str = "") -> Self:
        """Makes one from a description (`describing` shows it). UUIDs follow from the seed, such as the node's name.

        An empty description is a machine on which nobody has installed a driver.

        Raises:
            ConfigurationError: with every problem and its path, `gpus[0].model`.
        """
        seed = str(mapping.get("seed", seed)) if isinstance(mapping, Mapping) else seed
        simulated = cls(describing.describe(mapping, seed), seed=seed)
        if not mapping:
            simulated.fail(_NO_DRIVER)
        return simulated

    def connect(self) -> Self:
        """The same machine for another process, such as the agent that follows this one while it still ends."""
        other = copy.copy(self)
        other._connection = _Connection()  # noqa: SLF001 - of its own class
        return other

    def start(self) -> None:
        """Connects, unless `fail` says otherwise."""
        with self._machine.lock:
            if self._machine.failure:
                raise DriverUnavailable(self._machine.failure)
            self._machine.connected.add(self._connection)

    def stop(self) -> None:
        """Disconnects and forgets who listens to what."""
        with self._machine.lock:
            self._machine.connected.discard(self._connection)
            self._connection.registered.clear()
            self._connection.events.clear()
            self._machine.lock.notify_all()

    def driver(self) -> Driver:
        """Versions as described."""
        with self._machine.lock:
            self._check()
            return self._machine.driver

    def count(self) -> int:
        """Number of GPUs; a lost one counts."""
        with self._machine.lock:
            self._check()
            return len(self._machine.gpus)

    def gpu(self, index: int) -> GPU:
        """One GPU, whole."""
        with self._machine.lock:
            return self._described(index).gpu

    def register_events(self, index: int) -> bool:
        """Every simulated GPU can report events."""
        with self._machine.lock:
            self._connection.registered.add(self._described(index).gpu.uuid)
            return True

    def wait_event(self, timeout: float) -> Event | None:
        """The next injected event. A driver that fails wakes whoever waits."""
        with self._machine.lock:
            self._check()
            self._machine.lock.wait_for(lambda: self._connection.events or not self._is_connected(), timeout)
            self._check()
            return self._connection.events.popleft() if self._connection.events else None

    def recovery(self, index: int) -> Recovery | None:
        """As last set; an older driver, which does not tell, until then."""
        with self._machine.lock:
            self._described(index)
            return self._machine.recoveries.get(index)

    def ancestor(self, index: int, other: int) -> Ancestor:
        """The closest place that both descriptions name; without one, the NUMA node, or only the system."""
        with self._machine.lock:
            one, two = self._described(index), self._described(other)
        for place, ancestor in _PLACES.items():
            if index == other or (place in one.places and one.places[place] == two.places.get(place)):
                return ancestor
        if one.gpu.numa_node is None and two.gpu.numa_node is None:
            return Ancestor.HOST_BRIDGE
        return Ancestor.NUMA_NODE if one.gpu.numa_node == two.gpu.numa_node else Ancestor.SYSTEM

    def nvlinks(self, index: int) -> tuple[NvLink, ...]:
        """Links that this GPU's entry has, and those that another's has to it."""
        with self._machine.lock:
            described = self._described(index)
            others = list(self._machine.gpus)
        links: list[NvLink] = []
        for other in others:
            count = described.nvlink.get(other.gpu.index, other.nvlink.get(index, 0)) if other is not described else 0
            links += [NvLink(remote_bus_id=other.gpu.bus_id)] * count
        for number in range(described.nvlink.get(describing.SWITCH, 0)):
            bus_id = _SWITCH_BUS_IDS[number % len(_SWITCH_BUS_IDS)]
            links.append(NvLink(remote_bus_id=bus_id, to_switch=True))
        return tuple(links)

    def processes(self, index: int) -> tuple[Process, ...]:
        """Processes as described, or as last set."""
        with self._machine.lock:
            return self._described(index).processes

    def inject(self, event: Event) -> None:
        """Lets a GPU report something; heard only where its events are registered, as on a real one."""
        with self._machine.lock:
            for connection in self._machine.connected:
                if not event.uuid or event.uuid in connection.registered:
                    connection.events.append(event)
            self._machine.lock.notify_all()

    def fail(self, reason: str) -> None:
        """From now on the driver cannot be reached; with an empty reason it can again, after a `start`."""
        with self._machine.lock:
            self._machine.failure = reason
            if reason:
                self._machine.connected.clear()
            self._machine.lock.notify_all()

    def lose(self, index: int) -> None:
        """The GPU falls off the bus."""
        with self._machine.lock:
            self._machine.lost.add(index)

    def restore(self, index: int) -> None:
        """The GPU is back."""
        with self._machine.lock:
            self._machine.lost.discard(index)

    def ask_for(self, index: int, recovery: Recovery | None) -> None:
        """From now on the driver asks for this to be done to the GPU; None: it does not tell."""
        with self._machine.lock:
            if recovery is None:
                self._machine.recoveries.pop(index, None)
            else:
                self._machine.recoveries[index] = recovery

    def split(self, index: int, profiles: Sequence[str] | None) -> None:
        """Changes the MIG layout of one GPU; None turns MIG off. Raises ConfigurationError where it does not fit."""
        with self._machine.lock:
            described = self._machine.gpus[index]
            if profiles is None:
                gpu = replace(described.gpu, mig_enabled=False, mig=())
            else:
                gpu = describing.split(described, profiles, self._machine.seed)
            self._machine.gpus[index] = replace(described, gpu=gpu)

    def set_processes(self, index: int, processes: Sequence[Process]) -> None:
        """Changes what computes on one GPU."""
        with self._machine.lock:
            self._machine.gpus[index] = replace(self._machine.gpus[index], processes=tuple(processes))

    def _check(self) -> None:
        if self._machine.failure:
            raise DriverUnavailable(self._machine.failure)
        if not self._is_connected():
            raise DriverUnavailable("the driver is not connected")

    def _is_connected(self) -> bool:
        return self._connection in self._machine.connected

    def _described(self, index: int) -> describing.Described:
        self._check()
        if index in self._machine.lost:
            raise GpuLost(f"GPU {index} is lost")
        return self._machine.gpus[index]
