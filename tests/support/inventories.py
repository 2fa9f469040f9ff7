"""Inventories and configurations for tests: built by hand, or drawn at random."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st

from gpushare.api.sharing import DeviceSelection, Flags, SharedResource, SharingConfig
from gpushare.domain.devices import GPU, ComputeCapability, Health, Inventory, MigInstance
from gpushare.domain.pools import Allocation, Strategy

PROFILES = ("1g.5gb", "1g.5gb+me", "2g.10gb", "3g.20gb", "1c.3g.20gb")


XID_79 = Health(healthy=False, reason="XID 79", since="2026-01-01T00:00:00Z")
"""Of a GPU that has fallen off the bus."""


def gpu(index: int, **fields: Any) -> GPU:
    """A Tesla T4, or what the fields make of it."""
    defaults: dict[str, Any] = {
        "uuid": f"GPU-{index:08x}-0000-0000-0000-000000000000",
        "product": "Tesla T4",
        "minor": index,
        "memory_mib": 15360,
        "compute_capability": ComputeCapability(major=7, minor=5),
        "numa_node": index // 2,
        "pci_class": 0x030200,
        "paths": (f"/dev/nvidia{index}",),
    }
    return GPU(index=index, **(defaults | fields))


def split_gpu(index: int, *profiles: str, **fields: Any) -> GPU:
    """An A100 in MIG mode with these instances."""
    defaults: dict[str, Any] = {
        "product": "NVIDIA A100-SXM4-40GB",
        "memory_mib": 40960,
        "compute_capability": ComputeCapability(major=8, minor=0),
        "mig_capable": True,
        "mig_enabled": True,
        "mig": tuple(instance(index, position, profile) for position, profile in enumerate(profiles)),
    }
    return gpu(index, **(defaults | fields))


def instance(gpu_index: int, index: int, profile: str) -> MigInstance:
    """One MIG instance; its figures follow from the profile's name."""
    slices = int(profile.removeprefix("1c.")[0])
    return MigInstance(
        index=index,
        uuid=f"MIG-{gpu_index:08x}-0000-0000-0000-{index:012x}",
        profile=profile,
        gpu_instance=index + 7,
        compute_instance=0,
        memory_mib=4864 * slices,
        multiprocessors=14 * slices,
        gpu_slices=slices,
        compute_slices=1 if profile.startswith("1c.") else slices,
    )


def node(*gpus: GPU) -> Inventory:
    """A node with these GPUs."""
    return Inventory(gpus=gpus, driver_version="550.90.07", cuda_version=(12, 4))


def t4s(count: int) -> Inventory:
    """So many equal GPUs."""
    return node(*map(gpu, range(count)))


def entry(replicas: int, name: str = "nvidia.com/gpu", **fields: Any) -> SharedResource:
    """One entry under `sharing.timeSlicing`, not renamed."""
    defaults: dict[str, Any] = {"path": "sharing.timeSlicing.resources[0]", "offered_as": name}
    return SharedResource(name=name, replicas=replicas, **(defaults | fields))


def sliced(*entries: SharedResource, strategy: Strategy = Strategy.TIME_SLICING, **fields: Any) -> SharingConfig:
    """A configuration with these entries; of MPS, one that knows its directory."""
    defaults: dict[str, Any] = {"flags": Flags(mps_root="/run/nvidia/mps")}
    return SharingConfig(strategy=strategy, resources=entries, **(defaults | fields))


@st.composite
def inventories(draw: st.DrawFn) -> Inventory:
    """Nodes with up to six GPUs, whole or split, of one model or two."""
    gpus = []
    for index in range(draw(st.integers(0, 6))):
        profiles = draw(st.none() | st.lists(st.sampled_from(PROFILES), max_size=3))
        product = draw(st.sampled_from(("Tesla T4", "NVIDIA A10 (Rev. 1)", "§", "x" * 80)))
        gpus.append(gpu(index, product=product) if profiles is None else split_gpu(index, *profiles))
    return node(*gpus)


@st.composite
def configs(draw: st.DrawFn) -> SharingConfig:
    """Configurations with up to three entries, some for resources that no node has."""
    resources = ["nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "nvidia.com/mig-2g.10gb", "nvidia.com/none"]
    entries = []
    for position, name in enumerate(draw(st.lists(st.sampled_from(resources), unique=True, max_size=3))):
        devices = draw(
            st.sampled_from((DeviceSelection(), DeviceSelection(count=1), DeviceSelection(refs=("0", "1:0"))))
        )
        offered_as = name + draw(st.sampled_from(("", ".shared")))
        path = f"sharing.timeSlicing.resources[{position}]"
        replicas = draw(st.integers(1, 5))
        entries.append(
            entry(replicas, name, offered_as=offered_as if replicas > 1 else name, devices=devices, path=path)
        )
    strategy = draw(st.sampled_from((Strategy.TIME_SLICING, Strategy.MPS)))
    is_shared = any(each.replicas > 1 for each in entries)
    return sliced(
        *entries,
        strategy=strategy if is_shared else Strategy.NONE,
        fail_requests_greater_than_one=draw(st.booleans()),
        flags=Flags(mps_root="/mps"),
    )


allocations = st.sampled_from(tuple(Allocation))
