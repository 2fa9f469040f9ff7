"""Which device belongs to which resource before anything is shared: the MIG strategies. Used by `building`.

Resource names and rules of the three strategies are those of NVIDIA's device plugin. Where that one exits, a strategy that
this node cannot have is a problem, and a single device that fits no resource is left out and named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gpushare import names
from gpushare.domain.devices import GPU, Inventory, MigInstance, MigStrategy
from gpushare.domain.pools import Share
from gpushare.domain.shares import ShareId
from gpushare.errors import Problem

_PATH: Final = "migStrategy"
"""Not of `flags`: a ClusterPolicy may have said it."""
_COMPUTE_PART: Final = re.compile(r"\d+c\.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Whole devices by resource name, each as a share without a number."""

    devices: Mapping[str, tuple[Share, ...]]
    """Has `nvidia.com/gpu` always, if only with nothing in it."""
    problems: tuple[Problem, ...] = ()
    """Why this node cannot have the strategy; no resource holds anything then."""
    unserved: tuple[Problem, ...] = ()
    """Devices that no resource holds, and why."""


def mig_resource(profile: str) -> str:
    """The resource of a MIG profile in mixed mode: `nvidia.com/mig-1g.5gb.me` for `1g.5gb+me`."""
    return names.RESOURCE_MIG_PREFIX + re.sub("[+,]", ".", profile)


def build_layout(inventory: Inventory, strategy: MigStrategy) -> Layout:
    """Sorts the devices of a node by resource. Order: GPU, then MIG instance."""
    if strategy is MigStrategy.NONE:
        return Layout(devices={names.RESOURCE_GPU: tuple(map(_whole, inventory.gpus))})
    if strategy is MigStrategy.SINGLE:
        return _single(inventory)
    return _mixed(inventory)


def _single(inventory: Inventory) -> Layout:
    split = [gpu for gpu in inventory.gpus if gpu.mig_enabled]
    if not split:
        return Layout(devices={names.RESOURCE_GPU: tuple(map(_whole, inventory.gpus))})
    reason = _why_not_single(inventory, split)
    if reason:
        problem = Problem(path=_PATH, message=f"{reason}; split all GPUs alike, or use mixed")
        return Layout(devices={names.RESOURCE_GPU: ()}, problems=(problem,))
    return Layout(devices={names.RESOURCE_GPU: tuple(_instance(gpu, mig) for gpu in split for mig in gpu.mig)})


def _why_not_single(inventory: Inventory, split: list[GPU]) -> str:
    whole = [gpu.index for gpu in inventory.gpus if not gpu.mig_enabled]
    if whole:
        return f"single needs MIG on all GPUs or on none, but {_gpus(whole)} not in MIG mode"
    empty = [gpu.index for gpu in split if not gpu.mig]
    if empty:
        return f"single needs MIG instances on every GPU, but {_gpus(empty)} without any"
    # Compared by all that a pod could notice: two models may have a profile of the same name.
    kinds = {(mig.profile, mig.memory_mib, mig.multiprocessors, mig.engines) for gpu in split for mig in gpu.mig}
    if len(kinds) > 1:
        profiles = ", ".join(sorted({profile for profile, *_ in kinds}))
        return f"single needs MIG instances of one kind, but this node has several ({profiles})"
    return ""


def _mixed(inventory: Inventory) -> Layout:
    devices: dict[str, list[Share]] = {names.RESOURCE_GPU: []}
    unserved: list[Problem] = []
    for gpu in inventory.gpus:
        if not gpu.mig_enabled:
            devices[names.RESOURCE_GPU].append(_whole(gpu))
        elif not gpu.mig:
            message = f"GPU {gpu.index} is in MIG mode and has no instances, so nothing of it is offered"
            unserved.append(Problem(path=_PATH, message=message))
        for mig in gpu.mig:
            if _COMPUTE_PART.match(mig.profile):
                message = (
                    f"MIG instance {gpu.index}:{mig.index} ({mig.profile}) has fewer compute slices than GPU slices, "
                    "for which there is no resource name; make it a whole GPU instance"
                )
                unserved.append(Problem(path=_PATH, message=message))
            else:
                devices.setdefault(mig_resource(mig.profile), []).append(_instance(gpu, mig))
    ordered = {name: tuple(devices[name]) for name in sorted(devices)}
    return Layout(devices=ordered, unserved=tuple(unserved))


def _gpus(indices: list[int]) -> str:
    listed = ", ".join(map(str, indices))
    return f"GPU {listed} is" if len(indices) == 1 else f"GPUs {listed} are"


def _whole(gpu: GPU) -> Share:
    return Share(
        id=ShareId(gpu.uuid),
        gpu_index=gpu.index,
        healthy=gpu.health.healthy,
        numa_node=gpu.numa_node,
        paths=gpu.paths,
    )


def _instance(gpu: GPU, mig: MigInstance) -> Share:
    return Share(
        id=ShareId(mig.uuid),
        gpu_index=gpu.index,
        mig_index=mig.index,
        healthy=gpu.health.healthy and mig.health.healthy,
        numa_node=gpu.numa_node,
        paths=mig.paths,
    )
