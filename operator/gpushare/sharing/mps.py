"""Which MPS control daemons a node needs, and with which limits. Used by `gpushare mps`, and by the agent that waits for them.

Figures as NVIDIA's MPS control daemon sets them: memory by NVML's index, since the control program honours no UUID.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from gpushare.domain.devices import GPU, Inventory
from gpushare.domain.pools import Pool, Strategy

_ALL: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLimit:
    """How much of one GPU each CUDA client may pin, unless it asks for less."""

    gpu_index: int
    mib: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MpsDaemon:
    """One control daemon: it serves the clients of one resource, on all GPUs that are shared under its name."""

    resource: str
    """Full name, `nvidia.com/gpu`; its directories are named after it."""
    thread_percentage: int
    """Of a GPU's threads that each CUDA client may use."""
    memory_limits: tuple[MemoryLimit, ...] = ()
    """In order of index; a GPU that does not tell its memory has none."""
    gpus: tuple[str, ...] = ()
    """UUIDs of the GPUs that no other process than its server may use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonChanges:
    """The difference between the daemons that are there and those that should be. A changed one is in both."""

    end: tuple[MpsDaemon, ...] = ()
    begin: tuple[MpsDaemon, ...] = ()


def thread_percentage(pool: Pool) -> int:
    """What one share of the pool may use of a GPU's threads, in percent, rounded down.

    All of them where parts of GPUs differ: each client is told its own limit, which may only be less than the daemon's.
    """
    return 100 // pool.replicas if pool.fractions is None else _ALL


def needs_daemon(pool: Pool) -> bool:
    """Whether any share of the pool can be given out only while its MPS daemon runs."""
    return pool.strategy is Strategy.MPS and any(share.id.number is not None for share in pool.shares)


def build_daemons(pools: Mapping[str, Pool], inventory: Inventory) -> Mapping[str, MpsDaemon]:
    """The daemons of a node by resource. Health of GPUs makes no difference: a restart would end every client."""
    return {name: _daemon_of(pool, inventory) for name, pool in sorted(pools.items()) if needs_daemon(pool)}


def build_changes(known: Iterable[MpsDaemon], wanted: Mapping[str, MpsDaemon]) -> DaemonChanges:
    """Compares by value. A daemon that is equal in both appears nowhere, so that its clients notice nothing."""
    before = {daemon.resource: daemon for daemon in known}
    return DaemonChanges(
        end=tuple(daemon for name, daemon in sorted(before.items()) if wanted.get(name) != daemon),
        begin=tuple(daemon for name, daemon in sorted(wanted.items()) if before.get(name) != daemon),
    )


def _daemon_of(pool: Pool, inventory: Inventory) -> MpsDaemon:
    shared = {share.gpu_index for share in pool.shares if share.id.number is not None}
    gpus = [gpu for gpu in inventory.gpus if gpu.index in shared]
    return MpsDaemon(
        resource=pool.resource,
        thread_percentage=thread_percentage(pool),
        memory_limits=_memory_limits(pool, gpus),
        gpus=tuple(gpu.uuid for gpu in gpus),
    )


def _memory_limits(pool: Pool, gpus: Iterable[GPU]) -> tuple[MemoryLimit, ...]:
    if pool.fractions is not None:
        return ()
    return tuple(
        MemoryLimit(gpu_index=gpu.index, mib=gpu.memory_mib // pool.replicas) for gpu in gpus if gpu.memory_mib
    )
