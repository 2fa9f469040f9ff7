"""What keeps a node from a configuration with fewer shares, where that says `onShrink: refuse`. Used by `outlook`.

By what agents report; they themselves go by the ids that the kubelet knows, and decide it anew when it comes to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from gpushare.domain.devices import Inventory
from gpushare.domain.gpunode import ContainerAllocation, GPUNodeStatus
from gpushare.domain.pools import Pool
from gpushare.plan import wording


def find_shrinking(told: GPUNodeStatus, pools: Mapping[str, Pool], inventory: Inventory) -> Iterator[str]:
    """Resources of which more is in use than there would be, in the words of the agent.

    Args:
        told: by the agent: what is offered now, and who holds it.
        pools: that would be offered.
        inventory: of the node.
    """
    in_use = Counter({resource.name: resource.allocated for resource in told.resources})
    in_use.update(_held_under_other_names(told, pools, inventory))
    for resource in told.resources:
        offered = len(pools[resource.name].shares) if resource.name in pools else 0
        if offered < min(resource.total, in_use[resource.name]):
            yield (
                f"gpushare.onShrink: {in_use[resource.name]} of {resource.name} are in use{_by(told, resource.name)} "
                f"and only {offered} would be left; delete pods first"
            )


def _held_under_other_names(told: GPUNodeStatus, pools: Mapping[str, Pool], inventory: Inventory) -> Iterator[str]:
    """Once a share that somebody holds: the other resource that its device would be part of."""
    devices = {gpu.index: {gpu.uuid, *(mig.uuid for mig in gpu.mig)} for gpu in inventory.gpus}
    offering = {name: {share.id.device for share in pool.shares} for name, pool in pools.items()}
    for held in told.allocations:
        if offering.get(held.resource):
            continue
        for name, offered in offering.items():
            if name != held.resource and not offered.isdisjoint(devices.get(held.gpu_index, ())):
                yield from [name] * _count(held)


def _count(held: ContainerAllocation) -> int:
    return len(held.shares) or 1


def _by(told: GPUNodeStatus, resource: str) -> str:
    pods = {f"{held.namespace}/{held.pod}" for held in told.allocations if held.resource == resource}
    return f" by {wording.listed(pods, wording.PODS)}" if pods else ""
