"""MIG layouts of simulated GPUs: which instances a list of profiles makes, and whether they fit. Used by `describing`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from gpushare.domain.devices import GPU, MigInstance
from gpushare.errors import Problem
from gpushare.nvml.models import GPU_SLICES, MEMORY_SLICES, Model

_CAPS_A_GPU: Final = 135
_CAPS_AN_INSTANCE: Final = 9
_FIRST_CAP: Final = 3
"""Minor numbers of capability devices, as the driver counts them: after two of its own, 135 a GPU, 9 a GPU instance."""


def check_profiles(gpu: GPU, model: Model, profiles: Sequence[str], path: str) -> Iterator[Problem]:
    """What speaks against this layout; `path` is where it stands in a description."""
    if not model.profiles:
        yield Problem(path=path, message=f"{gpu.product} has no MIG; remove it, or take an A100, H100 or H200")
        return
    for position, name in enumerate(profiles):
        if name not in model.profiles:
            known = ", ".join(model.profiles)
            message = f'"{name}" is no profile of {gpu.product}; it has {known}'
            yield Problem(path=f"{path}[{position}]", message=message)
            return
    for name in dict.fromkeys(profiles):
        most, count = model.profiles[name].most, profiles.count(name)
        if count > most:
            yield Problem(path=path, message=f"{name} fits {most} times, not {count}")
            return
    slices = sum(model.profiles[name].gpu_slices for name in profiles)
    memory = sum(model.profiles[name].memory_slices for name in profiles)
    if slices > GPU_SLICES or memory > MEMORY_SLICES:
        needs = f"{slices} of {GPU_SLICES} slices and {memory} of {MEMORY_SLICES} parts of the memory"
        yield Problem(path=path, message=f"does not fit on one GPU: it needs {needs}")


def build_instances(gpu: GPU, model: Model, profiles: Sequence[str], uuids: Sequence[str]) -> tuple[MigInstance, ...]:
    """The instances of a layout without problems, in the order of the profiles, one UUID for each."""
    used: set[int] = set()
    instances: list[MigInstance] = []
    for index, (name, uuid) in enumerate(zip(profiles, uuids, strict=True)):
        profile = model.profiles[name]
        number = next(number for number in range(profile.first_id, 256) if number not in used)
        used.add(number)
        cap = _FIRST_CAP + gpu.minor * _CAPS_A_GPU + number * _CAPS_AN_INSTANCE
        instances.append(
            MigInstance(
                index=index,
                uuid=uuid,
                profile=name,
                gpu_instance=number,
                compute_instance=0,
                memory_mib=profile.memory_mib,
                multiprocessors=profile.multiprocessors,
                gpu_slices=profile.gpu_slices,
                compute_slices=profile.gpu_slices,
                engines=profile.engines,
                paths=(*gpu.paths, f"/dev/nvidia-caps/nvidia-cap{cap}", f"/dev/nvidia-caps/nvidia-cap{cap + 1}"),
            )
        )
    return tuple(instances)
