"""Pools of a node that gives out parts of GPUs by memory and compute. Called by `building` where a configuration says so.

What the kubelet counts is either slots (`nvidia.com/gpu`, the words of HAMi), of which the scheduler knows the memory, or
units of memory (`aliyun.com/gpu-mem`). Every id names its GPU, so that what a container got stands in its ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gpushare import names
from gpushare.api.sharing import SharingConfig
from gpushare.domain.devices import GPU, Inventory, MigStrategy
from gpushare.domain.fractions import Dialect, FractionMode, Isolation
from gpushare.domain.pools import Pool, Share, Strategy
from gpushare.domain.shares import UNIT_SEPARATOR, ShareId
from gpushare.errors import Problem
from gpushare.sharing import capability
from gpushare.sharing.layout import build_layout

RESOURCES: Final = (names.RESOURCE_GPU, names.RESOURCE_ALIYUN_MEM, names.RESOURCE_ALIYUN_COUNT)
"""Of both dialects. Those of the other one are served with nothing in them, so that the node shows 0."""
REQUESTED: Final = {Dialect.HAMI: names.RESOURCE_GPU, Dialect.ALIYUN: names.RESOURCE_ALIYUN_MEM}
"""The resource whose ids containers get, in each dialect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FractionPools:
    """What a node offers in a fraction mode, and what is to be said about it."""

    pools: Mapping[str, Pool]
    """By resource name; without a share where there are problems."""
    mode: FractionMode | None
    """As it is in force, with a unit of which the kubelet can take the list. None: MIG instances are given out whole, by
    resources of their own, and there is nothing to do for a scheduler of fractions."""
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()


def build_pools(inventory: Inventory, config: SharingConfig, mode: FractionMode) -> FractionPools:
    """The pools of a node in this mode."""
    if mode.isolation is Isolation.MIG:
        return _whole_instances(inventory)
    gpus = [gpu for gpu in inventory.gpus if not gpu.mig_enabled and gpu.memory_mib]
    warnings = [*_left_out(inventory)]
    if mode.dialect is Dialect.ALIYUN and (grown := _grow_unit(gpus, mode)) != mode:
        message = (
            f"units of {mode.unit_mib} MiB make a list longer than the kubelet takes ({capability.MAX_LIST_BYTES:,} bytes): "
            f"this node counts units of {grown.unit_mib} MiB; write memoryUnit: 256MiB or GiB"
        )
        warnings.append(Problem(path="gpushare.memoryUnit", message=message))
        mode = grown
    problems = tuple(_check(inventory, config, mode, gpus))
    offered = {} if problems else _shares_of(gpus, mode)
    pools = {name: _pool(name, tuple(offered.get(name, ())), mode) for name in RESOURCES}
    return FractionPools(pools=pools, mode=mode, problems=problems, warnings=tuple(warnings))


def units_of(gpu: GPU, mode: FractionMode) -> int:
    """Units of `aliyun.com/gpu-mem` that one GPU has."""
    return int(gpu.memory_mib * mode.memory_scaling) // mode.unit_mib


def _shares_of(gpus: Sequence[GPU], mode: FractionMode) -> dict[str, Iterator[Share]]:
    if mode.dialect is Dialect.ALIYUN:
        units = (
            _share(gpu, ShareId(gpu.uuid, unit, UNIT_SEPARATOR)) for gpu in gpus for unit in range(units_of(gpu, mode))
        )
        return {
            names.RESOURCE_ALIYUN_MEM: units,
            names.RESOURCE_ALIYUN_COUNT: (_share(gpu, ShareId(gpu.uuid)) for gpu in gpus),
        }
    if mode.isolation is Isolation.EXCLUSIVE:
        return {names.RESOURCE_GPU: (_share(gpu, ShareId(gpu.uuid)) for gpu in gpus)}
    return {names.RESOURCE_GPU: (_share(gpu, ShareId(gpu.uuid, slot)) for gpu in gpus for slot in range(mode.slots))}


def _share(gpu: GPU, share_id: ShareId) -> Share:
    # Without a NUMA node: the kubelet would align by it before it asks which GPU is meant.
    return Share(id=share_id, gpu_index=gpu.index, healthy=gpu.health.healthy, paths=gpu.paths)


def _pool(name: str, shares: tuple[Share, ...], mode: FractionMode) -> Pool:
    plain = Pool(resource=name, base=name, fractions=mode)
    if not shares or mode.isolation is Isolation.EXCLUSIVE or name == names.RESOURCE_ALIYUN_COUNT:
        return replace(plain, shares=shares)
    most = mode.slots if mode.dialect is Dialect.HAMI else max(_count_by_gpu(shares).values())
    strategy = Strategy.MPS if mode.isolation is Isolation.MPS else Strategy.TIME_SLICING
    return replace(plain, shares=shares, replicas=most, strategy=strategy)


def _count_by_gpu(shares: Sequence[Share]) -> Mapping[int, int]:
    counts: dict[int, int] = {}
    for share in shares:
        counts[share.gpu_index] = counts.get(share.gpu_index, 0) + 1
    return counts


def _grow_unit(gpus: Sequence[GPU], mode: FractionMode) -> FractionMode:
    """Doubles the unit until the kubelet can take the list."""
    while _units_bytes(gpus, mode) > capability.MAX_LIST_BYTES:
        mode = replace(mode, unit_mib=mode.unit_mib * 2)
    return mode


def _units_bytes(gpus: Sequence[GPU], mode: FractionMode) -> int:
    counts = {gpu.uuid: units_of(gpu, mode) for gpu in gpus}
    longest = (ShareId(uuid, count, UNIT_SEPARATOR) for uuid, count in counts.items())
    return sum(
        count * capability.share_bytes(str(share)) for share, count in zip(longest, counts.values(), strict=True)
    )


def _check(inventory: Inventory, config: SharingConfig, mode: FractionMode, gpus: Sequence[GPU]) -> Iterator[Problem]:
    """What this node cannot do."""
    if mode.isolation is Isolation.MPS:
        yield from capability.check_mps(inventory, config, MigStrategy.NONE, path="gpushare.isolation")
        yield from _check_clients(mode, gpus)
    if mode.dialect is Dialect.HAMI:
        size = sum(capability.share_bytes(str(ShareId(gpu.uuid, mode.slots))) for gpu in gpus) * mode.slots
        if size > capability.MAX_LIST_BYTES:
            most = mode.slots * capability.MAX_LIST_BYTES // size
            message = (
                f"{mode.slots} slots of {len(gpus)} GPUs make a list of {size:,} bytes; "
                f"the kubelet takes {capability.MAX_LIST_BYTES:,}: write {most} or less"
            )
            yield Problem(path="gpushare.slots", message=message)


def _check_clients(mode: FractionMode, gpus: Sequence[GPU]) -> Iterator[Problem]:
    """Whether MPS can serve as many containers as a GPU may take. How many units become how few is not known before."""
    clients = mode.slots if mode.dialect is Dialect.HAMI else 1
    for gpu in {gpu.product: gpu for gpu in gpus}.values():
        limit = capability.mps_clients(gpu.compute_capability)
        if clients > limit:
            model = f"{gpu.product} (compute capability {gpu.compute_capability})"
            message = f"{model} takes {limit} MPS clients at most" if limit else f"{model} is too old for MPS"
            yield Problem(path="gpushare.slots" if limit else "gpushare.isolation", message=message)


def _left_out(inventory: Inventory) -> Iterator[Problem]:
    split = [str(gpu.index) for gpu in inventory.gpus if gpu.mig_enabled]
    if split:
        message = (
            f"MIG is on at GPU {', '.join(split)}, which takes no part in fractions; turn MIG off there, "
            "or give its instances out whole (isolation: mig)"
        )
        yield Problem(path="gpushare.fractions", message=message)
    silent = [str(gpu.index) for gpu in inventory.gpus if not gpu.mig_enabled and not gpu.memory_mib]
    if silent:
        message = (
            f"the driver does not tell the memory of GPU {', '.join(silent)}, of which no part can be given out then"
        )
        yield Problem(path="gpushare.fractions", message=message)


def _whole_instances(inventory: Inventory) -> FractionPools:
    """Tier mig: the instances that there are, each for one container, under the resource of its profile."""
    found = build_layout(inventory, MigStrategy.MIXED)
    instances = {name: shares for name, shares in found.devices.items() if name != names.RESOURCE_GPU}
    whole = [str(share.gpu_index) for share in found.devices[names.RESOURCE_GPU]]
    warnings = list(found.unserved)
    if whole:
        message = f"MIG is off at GPU {', '.join(whole)}, of which nothing is given out; turn MIG on and make instances"
        warnings.append(Problem(path="gpushare.isolation", message=message))
    pools = {name: Pool(resource=name, base=name, shares=instances.get(name, ())) for name in (*RESOURCES, *instances)}
    return FractionPools(pools=pools, mode=None, warnings=tuple(warnings))
