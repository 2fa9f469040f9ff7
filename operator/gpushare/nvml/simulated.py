"""A driver that a description stands for: any GPUs, on machines that have none. Used by the sandbox and by tests.

Differs from the real library in one thing that matters: it tells NUMA nodes, PCI classes and device nodes too, since there is
no host behind it that could be asked.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Self

from gpushare.domain.devices import GPU
from gpushare.nvml import describing
from gpushare.nvml.port import Ancestor, Driver, DriverUnavailable, Event, GpuLost, NvLink, Process

_SWITCH_BUS_IDS: Final = tuple(f"0000:{number:02x}:00.0" for number in range(0xC4, 0xCA))


class SimulatedNvml:
    """Implements `port.Nvml`, and lets whoever holds it break and mend things. Safe from any thread."""

    def __init__(self, description: describing.Description, *, seed: str = "") -> None:
        self._lock = threading.Condition()
        self._driver = description.driver
        self._gpus = list(description.gpus)
        self._seed = seed
        self._failure = ""
        self._lost: set[int] = set()
        self._registered: set[str] = set()
        self._events: deque[Event] = deque()
        self._is_started = False

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any], *, seed: str = "") -> Self:
        """Makes one from a description (`describing` shows it). UUIDs follow from the seed, such as the node's name.

        Raises:
            ConfigurationError: with every problem and its path, `gpus[0].model`.
        """
        seed = str(mapping.get("seed", seed)) if isinstance(mapping, Mapping) else seed
        return cls(describing.describe(mapping, seed), seed=seed)

    def start(self) -> None:
        """Connects, unless `fail` says otherwise."""
        with self._lock:
            if self._failure:
                raise DriverUnavailable(self._failure)
            self._is_started = True

    def stop(self) -> None:
        """Disconnects and forgets who listens to what."""
        with self._lock:
            self._is_started = False
            self._registered.clear()
            self._events.clear()
            self._lock.notify_all()

    def driver(self) -> Driver:
        """Versions as described."""
        with self._lock:
            self._check()
            return self._driver

    def count(self) -> int:
        """Number of GPUs; a lost one counts."""
        with self._lock:
            self._check()
            return len(self._gpus)

    def gpu(self, index: int) -> GPU:
        """One GPU, whole."""
        with self._lock:
            return self._described(index).gpu

    def register_events(self, index: int) -> bool:
        """Every simulated GPU can report events."""
        with self._lock:
            self._registered.add(self._described(index).gpu.uuid)
            return True

    def wait_event(self, timeout: float) -> Event | None:
        """The next injected event. A driver that fails wakes whoever waits."""
        with self._lock:
            self._check()
            self._lock.wait_for(lambda: self._events or self._failure or not self._is_started, timeout)
            self._check()
            return self._events.popleft() if self._events else None

    def ancestor(self, index: int, other: int) -> Ancestor:
        """As the description says: one board, one PCI switch, one NUMA node, or only the system in common."""
        with self._lock:
            one, two = self._described(index), self._described(other)
        if index == other or (one.board is not None and one.board == two.board):
            return Ancestor.BOARD
        if one.switch is not None and one.switch == two.switch:
            return Ancestor.SWITCH
        if one.gpu.numa_node is None and two.gpu.numa_node is None:
            return Ancestor.HOST_BRIDGE
        return Ancestor.NUMA_NODE if one.gpu.numa_node == two.gpu.numa_node else Ancestor.SYSTEM

    def nvlinks(self, index: int) -> tuple[NvLink, ...]:
        """Links that this GPU's entry has, and those that another's has to it."""
        with self._lock:
            described = self._described(index)
            others = list(self._gpus)
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
        with self._lock:
            return self._described(index).processes

    def inject(self, event: Event) -> None:
        """Lets a GPU report something; heard only where its events are registered, as on a real one."""
        with self._lock:
            if not event.uuid or event.uuid in self._registered:
                self._events.append(event)
                self._lock.notify_all()

    def fail(self, reason: str) -> None:
        """From now on the driver cannot be reached; with an empty reason it can again, after a `start`."""
        with self._lock:
            self._failure = reason
            self._is_started = self._is_started and not reason
            self._lock.notify_all()

    def lose(self, index: int) -> None:
        """The GPU falls off the bus."""
        with self._lock:
            self._lost.add(index)

    def restore(self, index: int) -> None:
        """The GPU is back."""
        with self._lock:
            self._lost.discard(index)

    def split(self, index: int, profiles: Sequence[str] | None) -> None:
        """Changes the MIG layout of one GPU; None turns MIG off. Raises ConfigurationError where it does not fit."""
        with self._lock:
            described = self._gpus[index]
            if profiles is None:
                gpu = replace(described.gpu, mig_enabled=False, mig=())
            else:
                gpu = describing.split(described, profiles, self._seed)
            self._gpus[index] = replace(described, gpu=gpu)

    def set_processes(self, index: int, processes: Sequence[Process]) -> None:
        """Changes what computes on one GPU."""
        with self._lock:
            self._gpus[index] = replace(self._gpus[index], processes=tuple(processes))

    def _check(self) -> None:
        if self._failure:
            raise DriverUnavailable(self._failure)
        if not self._is_started:
            raise DriverUnavailable("the driver is not connected")

    def _described(self, index: int) -> describing.Described:
        self._check()
        if index in self._lost:
            raise GpuLost(f"GPU {index} is lost")
        return self._gpus[index]
