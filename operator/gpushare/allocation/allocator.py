"""Keeps account of a node's GPUs: which are free, which are given out. For programs that use this package as a library."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence

from gpushare.allocation.policies import Policy
from gpushare.allocation.topology import Topology
from gpushare.domain.devices import GPU, Inventory
from gpushare.errors import AllocationError

Name = int | str | GPU
"""How to say which GPU: its index, its UUID, or the GPU itself."""


class Allocator:
    """Gives out the GPUs of one inventory by one policy. Safe from any thread; what it is asked, it does whole or not at all.

    Unlike go-gpuallocator's, it says why something cannot be done, and takes back only what it has given out.
    """

    def __init__(self, inventory: Inventory, policy: Policy) -> None:
        """All GPUs are free at first, but for sick ones, which are never given out."""
        self.topology = Topology.of(inventory)
        self._policy = policy
        self._gpus: Mapping[int, GPU] = {gpu.index: gpu for gpu in inventory.gpus}
        self._by_uuid = {gpu.uuid: gpu.index for gpu in inventory.gpus}
        self._free = {gpu.index for gpu in inventory.gpus if gpu.health.healthy}
        self._allocated: set[int] = set()
        self._lock = threading.Lock()

    @property
    def remaining(self) -> tuple[GPU, ...]:
        """Those that can be given out, in order of index."""
        with self._lock:
            return self._named(self._free)

    @property
    def allocated(self) -> tuple[GPU, ...]:
        """Those that are given out, in order of index."""
        with self._lock:
            return self._named(self._allocated)

    def allocate(self, size: int, *, required: Iterable[Name] = ()) -> tuple[GPU, ...]:
        """Gives out so many GPUs, chosen by the policy, in the policy's order.

        Raises:
            AllocationError: there is no such choice. Nothing was given out.
        """
        must = [self._index_of(name) for name in required]
        with self._lock:
            chosen = self._policy.choose(self.topology, tuple(sorted(self._free)), must, size)
            self._check(chosen, must, size)
            return self._give(chosen)

    def allocate_specific(self, *gpus: Name) -> tuple[GPU, ...]:
        """Gives out just these GPUs, in the order given.

        Raises:
            AllocationError: one of them is not free, or not known. None was given out.
        """
        wanted = list(dict.fromkeys(map(self._index_of, gpus)))
        with self._lock:
            lacking = [index for index in wanted if index not in self._free]
            if lacking:
                raise AllocationError(f"{_names(lacking)} {_be(lacking)} not free; free: {_names(self._free)}")
            return self._give(wanted)

    def free(self, *gpus: Name) -> None:
        """Takes back GPUs that were given out.

        Raises:
            AllocationError: one of them was not given out, or is not known. None was taken back.
        """
        returned = [self._index_of(name) for name in gpus]
        with self._lock:
            lacking = [index for index in dict.fromkeys(returned) if index not in self._allocated]
            if lacking:
                raise AllocationError(
                    f"{_names(lacking)} {_be(lacking)} not given out; given out: {_names(self._allocated)}"
                )
            self._allocated.difference_update(returned)
            self._free.update(returned)

    def _check(self, chosen: Sequence[int], required: Sequence[int], size: int) -> None:
        if not chosen:
            raise AllocationError(self._refusal(required, size))
        # A policy may be anybody's.
        if len(chosen) != size or len(set(chosen)) != size or not set(required) <= set(chosen) <= self._free:
            policy = type(self._policy).__name__
            wanted = f"{size} of {_names(self._free)}" + (f" with {_names(required)}" if required else "")
            raise AllocationError(f"policy {policy} answered {_names(chosen)} when asked for {wanted}")

    def _refusal(self, required: Sequence[int], size: int) -> str:
        if size < 1:
            return f"{size} GPUs cannot be given out; ask for 1 or more"
        lacking = [index for index in dict.fromkeys(required) if index not in self._free]
        if lacking:
            return f"{_names(lacking)} {_be(lacking)} required, but not free; free: {_names(self._free)}"
        if len(set(required)) > size:
            return f"{_names(required)} cannot all be among {size}"
        if len(self._free) < size:
            return f"{size} wanted, but only {len(self._free)} free: {_names(self._free)}"
        return f"policy {type(self._policy).__name__} has no set of {size} among the free GPUs: {_names(self._free)}"

    def _give(self, indices: Sequence[int]) -> tuple[GPU, ...]:
        self._free.difference_update(indices)
        self._allocated.update(indices)
        return tuple(self._gpus[index] for index in indices)

    def _named(self, indices: Iterable[int]) -> tuple[GPU, ...]:
        return tuple(self._gpus[index] for index in sorted(indices))

    def _index_of(self, name: Name) -> int:
        index = name.index if isinstance(name, GPU) else self._by_uuid.get(name, -1) if isinstance(name, str) else name
        # Another node's GPU may have the same index.
        if index not in self._gpus or (isinstance(name, GPU) and name.uuid != self._gpus[index].uuid):
            raise AllocationError(f"no GPU {name.uuid if isinstance(name, GPU) else name}; known: {_names(self._gpus)}")
        return index


def _names(indices: Iterable[int]) -> str:
    found = sorted(indices)
    return f"GPU {', '.join(map(str, found))}" if found else "none"


def _be(indices: Sequence[int]) -> str:
    return "is" if len(indices) == 1 else "are"
