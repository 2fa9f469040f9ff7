"""What a node cannot do, however it is configured: limits of MPS, and of what the kubelet can be told. Used by `building`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from gpushare.api.sharing import SharedResource, SharingConfig
from gpushare.domain.devices import GPU, ComputeCapability, Inventory, MigStrategy
from gpushare.domain.pools import Share
from gpushare.errors import Problem

MAX_LIST_BYTES: Final = 4 * 1024 * 1024
"""The kubelet's limit for one gRPC message: past it, the resource would vanish without a word."""
_BYTES_BESIDE_ID: Final = 26
"""Health, NUMA node, field tags and lengths of one device, and the separator and number of a share."""
_MPS_ROOT: Final = "/run/nvidia/mps"
_OLDEST_FOR_MPS: Final = ComputeCapability(major=7, minor=0)
_MORE_CLIENTS_FROM: Final = ComputeCapability(major=7, minor=5)
_MANY_CLIENTS: Final = 48
_FEW_CLIENTS: Final = 16
_LEAST_CLIENT_MIB: Final = 800
"""Below it users saw their programs fail: from 22 replicas on a T4, from 31 on an A30 (NVIDIA/k8s-device-plugin 1118)."""


def mps_clients(capability: ComputeCapability) -> int:
    """Clients that an MPS server takes on one GPU; 0 where MPS cannot limit them (before Volta)."""
    if capability < _OLDEST_FOR_MPS:
        return 0
    return _MANY_CLIENTS if capability >= _MORE_CLIENTS_FROM else _FEW_CLIENTS


def with_mps_root(config: SharingConfig) -> SharingConfig:
    """The same with a directory for MPS: for whoever only looks at what an agent would do, which is told of one."""
    return replace(config, flags=replace(config.flags, mps_root=config.flags.mps_root or _MPS_ROOT))


def check_mps(
    inventory: Inventory, config: SharingConfig, strategy: MigStrategy, *, path: str = "sharing.mps"
) -> Iterator[Problem]:
    """What speaks against MPS on this node at all. `path`: where the configuration asks for it."""
    if not config.flags.mps_root:
        yield Problem(path="flags.mpsRoot", message=f"MPS needs a directory on the host; write {_MPS_ROOT}")
    if strategy is MigStrategy.MIXED:
        message = "MPS does not go with the MIG strategy mixed; use timeSlicing, or the strategy none"
        yield Problem(path=path, message=message)
    else:
        split = [str(gpu.index) for gpu in inventory.gpus if gpu.mig_enabled]
        if split:
            message = f"MPS does not share MIG devices, and MIG is on at GPU {', '.join(split)}; use timeSlicing"
            yield Problem(path=path, message=message)


def check_mps_clients(entry: SharedResource, shared: Iterable[Share], gpus: Sequence[GPU]) -> Iterator[Problem]:
    """Whether the GPUs of one entry take as many MPS clients as it has replicas. One problem a model."""
    indices = {share.gpu_index for share in shared}
    seen: set[str] = set()
    for gpu in gpus:
        limit = mps_clients(gpu.compute_capability)
        if gpu.index not in indices or entry.replicas <= limit or gpu.product in seen:
            continue
        seen.add(gpu.product)
        model = f"{gpu.product} (compute capability {gpu.compute_capability})"
        message = (
            f"{model} takes {limit} MPS clients at most" if limit else f"{model} is too old for MPS; use timeSlicing"
        )
        yield Problem(path=f"{entry.path}.replicas", message=message)


def find_small_clients(entry: SharedResource, shared: Iterable[Share], gpus: Sequence[GPU]) -> Iterator[Problem]:
    """GPUs on which MPS clients get so little memory that they may not start. Warnings, one a model."""
    indices = {share.gpu_index for share in shared}
    seen: set[str] = set()
    for gpu in gpus:
        each = gpu.memory_mib // entry.replicas
        if gpu.index not in indices or not gpu.memory_mib or each >= _LEAST_CLIENT_MIB or gpu.product in seen:
            continue
        seen.add(gpu.product)
        message = (
            f"each client gets {each} MiB of {gpu.product}, of which CUDA takes some hundred for itself, so that programs "
            f"may not start; {gpu.memory_mib // _LEAST_CLIENT_MIB} replicas leave each {_LEAST_CLIENT_MIB} MiB"
        )
        yield Problem(path=f"{entry.path}.replicas", message=message)


def share_bytes(share_id: str) -> int:
    """What one share adds to the list, at most."""
    return len(share_id) + _BYTES_BESIDE_ID


def check_list_size(entry: SharedResource, shared: Sequence[Share]) -> Iterator[Problem]:
    """Whether the kubelet can take the list. Asked before the shares exist: a mistyped number may mean millions."""
    digits = len(str(entry.replicas - 1))
    one_round = sum(len(str(share.id)) + _BYTES_BESIDE_ID + digits for share in shared)
    if one_round * entry.replicas > MAX_LIST_BYTES:
        most = MAX_LIST_BYTES // one_round
        message = (
            f"{entry.replicas} shares of {len(shared)} devices make a list of {one_round * entry.replicas:,} bytes; "
            f"the kubelet takes {MAX_LIST_BYTES:,}: write {most} or less"
        )
        yield Problem(path=f"{entry.path}.replicas", message=message)
