"""Who holds which shares, from what the kubelet tells. Pure; the agent reports it."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from gpushare.domain.devices import Inventory
from gpushare.domain.pools import Pool
from gpushare.domain.shares import SEPARATOR, ShareId, device_of
from gpushare.kubelet.values import ContainerDevices

if TYPE_CHECKING:
    from gpushare.agent.fractions.reporting import Holdings
    from gpushare.domain.gpunode import ContainerAllocation


def count_allocated(holders: Iterable[ContainerDevices]) -> Mapping[str, int]:
    """Ids in use by resource, those too that the resource no longer offers."""
    counts: Counter[str] = Counter()
    for holder in holders:
        counts[holder.resource] += len(holder.ids)
    return counts


def build_allocations(
    holders: Iterable[ContainerDevices],
    pools: Mapping[str, Pool],
    inventory: Inventory,
    fractions: Holdings | None = None,
) -> tuple[ContainerAllocation, ...]:
    """What each container holds of each GPU, in order of GPU, namespace, pod, container and resource.

    An id that is offered no longer counts on its physical GPU all the same: its container still runs there. Of `fractions`,
    what is known besides ids.
    """
    from gpushare.domain.gpunode import ContainerAllocation  # late: with everything about reporting

    fractions = fractions or {}
    gpu_of = _gpus_by_device(inventory)
    held: dict[tuple[int, str, str, str, str], list[int]] = {
        (gpu_of[uuid], *place, holding.resource): []
        for place, holding in fractions.items()
        for uuid in holding.grants
        if not holding.told and uuid in gpu_of
    }
    for holder in holders:
        if holder.resource not in pools:
            continue
        for share_id in holder.ids:
            device = device_of(share_id)
            if device not in gpu_of:
                continue
            key = (gpu_of[device], holder.namespace, holder.pod, holder.container, holder.resource)
            numbers = held.setdefault(key, [])
            with contextlib.suppress(ValueError):
                parsed = ShareId.parse(share_id)
                # Units of memory are as good as each other, and many.
                if parsed.number is not None and parsed.separator == SEPARATOR:
                    numbers.append(parsed.number)
    uuid_of = {gpu.index: gpu.uuid for gpu in inventory.gpus}
    found = []
    for (gpu, namespace, pod, container, resource), numbers in sorted(held.items()):
        holding = fractions.get((namespace, pod, container))
        grant = holding.grants.get(uuid_of[gpu]) if holding is not None and holding.resource == resource else None
        found.append(
            ContainerAllocation(
                gpu_index=gpu,
                namespace=namespace,
                pod=pod,
                container=container,
                resource=resource,
                shares=tuple(sorted(numbers)),
                pod_uid=holding.pod_uid if holding is not None and grant is not None else "",
                memory_mib=grant.memory_mib if grant is not None else 0,
                cores=grant.cores if grant is not None else 0,
            )
        )
    return tuple(found)


def count_ghosts(
    holders: Iterable[ContainerDevices], pools: Mapping[str, Pool], inventory: Inventory
) -> Mapping[int, int]:
    """Ids in use that their resource no longer offers, by index of the physical GPU.

    The kubelet has forgotten them, and would give such a GPU out as if it were free.
    """
    gpu_of = _gpus_by_device(inventory)
    ghosts: Counter[int] = Counter()
    for holder in holders:
        offered = pools[holder.resource].by_id if holder.resource in pools else {}
        devices = (device_of(share_id) for share_id in holder.ids if share_id not in offered)
        ghosts.update(gpu_of[device] for device in devices if device in gpu_of)
    return ghosts


def find_shrinking(served: Mapping[str, Pool], wanted: Mapping[str, Pool]) -> Mapping[str, int]:
    """Resources that `wanted` offers less of than `served`, each with what would be left."""
    left = {name: len(wanted[name].shares) if name in wanted else 0 for name in served}
    return {name: offered for name, offered in left.items() if offered < len(served[name].shares)}


def shrink_beyond(
    holders: Iterable[ContainerDevices], served: Mapping[str, Pool], wanted: Mapping[str, Pool]
) -> Mapping[str, tuple[int, int]]:
    """Resources that `wanted` offers less of than is in use, each with (in use, offered).

    One that does not shrink is not concerned, however much of it is in use. What is held under another name, and would not be
    offered there, is in use here: it is on the same devices.
    """
    in_use = _count_use(holders, wanted)
    left = find_shrinking(served, wanted)
    return {name: (in_use[name], offered) for name, offered in left.items() if offered < in_use[name]}


def _count_use(holders: Iterable[ContainerDevices], pools: Mapping[str, Pool]) -> Counter[str]:
    holders = tuple(holders)
    in_use = Counter(count_allocated(holders))
    devices = {name: {share.id.device for share in pool.shares} for name, pool in pools.items()}
    for holder in holders:
        offered = pools[holder.resource].by_id if holder.resource in pools else {}
        for share_id in holder.ids:
            if share_id in offered:
                continue
            device = device_of(share_id)
            in_use.update(name for name in pools if name != holder.resource and device in devices[name])
    return in_use


def _gpus_by_device(inventory: Inventory) -> Mapping[str, int]:
    whole = {gpu.uuid: gpu.index for gpu in inventory.gpus}
    return whole | {mig.uuid: gpu.index for gpu in inventory.gpus for mig in gpu.mig}
