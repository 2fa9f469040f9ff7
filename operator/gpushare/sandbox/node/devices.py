"""The device manager's book: which devices plugins announce, which are given to whom, and which a container gets next.

Pure: `plugins` feeds it with what the sockets say and carries out what it decides. Behaves like the one in a kubelet
whose topology manager policy is `none`; refusals are in its words, since people search for them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpushare.errors import GpuShareError


class AllocationRefused(GpuShareError):  # noqa: N818 - the state is the name
    """A container cannot have the devices that it asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Devices of one resource as the Node shows them."""

    capacity: int = 0
    allocatable: int = 0
    """Healthy ones only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """Devices of one resource that one container holds."""

    pod_uid: str
    container: str
    resource: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A request that can be met; what is left is which devices it gets."""

    resource: str
    size: int
    available: frozenset[str]
    """Free healthy devices, and those in `must_include`."""
    must_include: frozenset[str]
    """Devices of the pod's init containers, which its containers take over."""
    asks_plugin: bool
    """Whether the plugin wants to be asked which ones it prefers."""

    def take(self, preferred: Iterable[str] = ()) -> tuple[str, ...]:
        """The devices: those that must be, then the preferred ones, then any others, in order of their ids.

        What is preferred counts only as far as it is available, and only up to the number asked for.
        """
        wanted = [*sorted(self.must_include), *(id_ for id_ in preferred if id_ in self.available)]
        return tuple(dict.fromkeys([*wanted, *sorted(self.available)]))[: self.size]


@dataclass(slots=True)
class _Resource:
    """One resource name: the plugin behind it and the last list that it sent."""

    generation: int = 0
    prefers: bool = False
    stopped_at: float | None = None
    healthy: frozenset[str] = frozenset()
    unhealthy: frozenset[str] = frozenset()


@dataclass(slots=True)
class DeviceBook:
    """Everything that the device manager of one node knows. Times are seconds of any one clock."""

    grace: float = 300.0
    """How long a resource whose plugin is gone keeps its capacity; the kubelet's own five minutes."""
    _resources: dict[str, _Resource] = field(default_factory=dict)
    _removed: set[str] = field(default_factory=set)
    _held: dict[tuple[str, str, str], tuple[str, ...]] = field(default_factory=dict)
    _registrations: int = 0

    def register(self, resource: str, *, prefers: bool) -> int:
        """A plugin says that it serves a resource; takes the place of the one before.

        Returns the generation that its lists carry, so that what the one before still sends is not mistaken for its.
        """
        self._registrations += 1
        known = self._resources.setdefault(resource, _Resource())
        known.generation, known.prefers, known.stopped_at = self._registrations, prefers, None
        self._removed.discard(resource)
        return self._registrations

    def announce(self, resource: str, generation: int, devices: Mapping[str, bool]) -> bool:
        """A new list, health by id. False when nothing changed, or a newer plugin has taken over."""
        known = self._resources.get(resource)
        if known is None or known.generation != generation:
            return False
        healthy = frozenset(id_ for id_, is_healthy in devices.items() if is_healthy)
        before = known.healthy, known.unhealthy
        known.healthy, known.unhealthy = healthy, frozenset(devices) - healthy
        return before != (known.healthy, known.unhealthy)

    def disconnect(self, resource: str, generation: int, now: float) -> bool:
        """The plugin's stream has ended: its devices cannot be given out, but for a while they still count as there."""
        known = self._resources.get(resource)
        if known is None or known.generation != generation or known.stopped_at is not None:
            return False
        known.stopped_at = now
        known.healthy, known.unhealthy = frozenset(), known.healthy | known.unhealthy
        return True

    def expire(self, now: float) -> bool:
        """Drops resources whose plugin has been gone for longer than the grace period. Whether there were any."""
        late = {name for name, known in self._resources.items() if self._is_late(known, now)}
        for name in late:
            del self._resources[name]
        self._removed |= late
        return bool(late)

    def _is_late(self, known: _Resource, now: float) -> bool:
        return known.stopped_at is not None and now - known.stopped_at >= self.grace

    def counts(self) -> dict[str, Counts]:
        """By resource name; one that was there once is shown as 0, not left out."""
        return {name: Counts() for name in self._removed} | {
            name: Counts(capacity=len(known.healthy) + len(known.unhealthy), allocatable=len(known.healthy))
            for name, known in self._resources.items()
        }

    def serves(self, resource: str) -> bool:
        """Whether requests for this resource are the device manager's business."""
        return resource in self._resources or any(name == resource for _, _, name in self._held)

    def request(
        self, pod_uid: str, container: str, resource: str, size: int, reusable: Collection[str] = ()
    ) -> Choice | None:
        """What a container could get; None when it already holds what it asks for, as after a restart.

        Raises:
            AllocationRefused: the request cannot be met.
        """
        if len(held := self._held.get((pod_uid, container, resource), ())) not in (0, size):
            raise AllocationRefused(
                f'pod "{pod_uid}" container "{container}" changed request for resource "{resource}" '
                f"from {len(held)} to {size}"
            )
        known = self._resources.get(resource)
        if known is None:
            raise AllocationRefused(f"cannot allocate unregistered device {resource}")
        if not known.healthy:
            raise AllocationRefused(f"no healthy devices present; cannot allocate unhealthy devices {resource}")
        if not known.healthy.issuperset(held):
            raise AllocationRefused(
                f"previously allocated devices are no longer healthy; cannot allocate unhealthy devices {resource}"
            )
        return None if held or not size else self._choice(known, resource, size, reusable)

    def _choice(self, known: _Resource, resource: str, size: int, reusable: Collection[str]) -> Choice:
        must_include = frozenset(sorted(reusable)[:size])
        free = known.healthy - self._given(resource)
        if len(free) < size - len(must_include):
            raise AllocationRefused(
                f"requested number of devices unavailable for {resource}. "
                f"Requested: {size - len(must_include)}, Available: {len(free)}"
            )
        return Choice(
            resource=resource,
            size=size,
            available=free | must_include,
            must_include=must_include,
            # Once the init containers' devices are enough there is nothing left to prefer.
            asks_plugin=known.prefers and len(must_include) < size,
        )

    def _given(self, resource: str) -> frozenset[str]:
        return frozenset(id_ for (_, _, name), ids in self._held.items() if name == resource for id_ in ids)

    def commit(self, pod_uid: str, container: str, resource: str, ids: Iterable[str]) -> None:
        """The plugin has agreed: the devices belong to the container until its pod ends."""
        self._held[pod_uid, container, resource] = tuple(ids)

    def release(self, pod_uid: str) -> bool:
        """The pod has ended; its devices are free. Whether it held any."""
        mine = [key for key in self._held if key[0] == pod_uid]
        for key in mine:
            del self._held[key]
        return bool(mine)

    def holdings(self) -> tuple[Holding, ...]:
        """Who holds what, in the order in which it was given."""
        return tuple(
            Holding(pod_uid=pod_uid, container=container, resource=resource, ids=ids)
            for (pod_uid, container, resource), ids in self._held.items()
        )

    def allocatable(self) -> dict[str, tuple[str, ...]]:
        """The healthy ids of each resource, given out or not."""
        return {name: tuple(sorted(known.healthy)) for name, known in self._resources.items()}

    def to_json(self) -> dict[str, Any]:
        """What survives a restart, in the shape of the kubelet's `kubelet_internal_checkpoint`, which other tools read."""
        return {
            "Data": {
                "PodDeviceEntries": [
                    {
                        "PodUID": holding.pod_uid,
                        "ContainerName": holding.container,
                        "ResourceName": holding.resource,
                        "DeviceIDs": {"-1": list(holding.ids)},  # -1: not tied to a NUMA node
                    }
                    for holding in self.holdings()
                ],
                "RegisteredDevices": {name: list(ids) for name, ids in self.allocatable().items()},
            }
        }

    @classmethod
    def from_json(cls, checkpoint: Mapping[str, Any], now: float, grace: float) -> DeviceBook:
        """The book after a restart: what was given stays given, and every resource counts 0 until its plugin is back."""
        data = checkpoint["Data"]
        book = cls(grace=grace)
        for entry in data["PodDeviceEntries"]:
            ids = [id_ for part in entry["DeviceIDs"].values() for id_ in part]
            book.commit(entry["PodUID"], entry["ContainerName"], entry["ResourceName"], ids)
        book._resources = {name: _Resource(stopped_at=now) for name in data["RegisteredDevices"]}
        return book
