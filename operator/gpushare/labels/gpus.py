"""Labels of whole GPUs: product, number, memory, family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from gpushare import names
from gpushare.domain.devices import GPU, ComputeCapability, Inventory, MigStrategy
from gpushare.domain.pools import Pool
from gpushare.labels import sharing
from gpushare.labels.models import prevailing
from gpushare.labels.values import sanitise, with_suffix

_FAMILIES: Final = {
    1: "tesla", 2: "fermi", 3: "kepler", 5: "maxwell", 6: "pascal", 9: "hopper", 10: "blackwell", 12: "blackwell", 13: "rubin"
}  # fmt: skip
_MIG_INVALID: Final = "-MIG-INVALID"


def build_labels(inventory: Inventory, pools: Mapping[str, Pool], strategy: MigStrategy) -> Mapping[str, str]:
    """Labels of the prevailing model. With the MIG strategy single, `mig` overwrites what differs."""
    gpus = prevailing(inventory.gpus)
    product = sanitise(gpus[0].product)
    labels = dict(_family(gpus[0].compute_capability))
    if _is_invalid(inventory, pools, strategy):
        return labels | {
            "gpu.product": with_suffix(product, _MIG_INVALID),
            "gpu.count": "0",
            "gpu.replicas": "0",
            "gpu.sharing-strategy": "",
            "gpu.memory": "0",
        }
    labels["gpu.count"] = str(len(gpus))
    if gpus[0].memory_mib:
        labels["gpu.memory"] = str(gpus[0].memory_mib)
    # 0 replicas: MIG is on at each of them, or only units of memory are given out, so that nobody gets a whole one.
    plain = pools.get(names.RESOURCE_GPU)
    in_units = plain is not None and plain.fractions is not None and not plain.shares
    unshared = int(any(not gpu.mig_enabled for gpu in gpus) and not in_units)
    pool = _whole_gpu_pool(pools, gpus)
    return labels | dict(sharing.build_labels("gpu", product, pool, unshared=unshared))


def family_of(capability: ComputeCapability) -> str:
    """NVIDIA's name of the architecture; `undefined` for one that has none."""
    major, minor = capability.major, capability.minor
    if major == 7:
        return "volta" if minor < 5 else "turing"
    if major == 8:
        return "ampere" if minor < 9 else "ada-lovelace"
    return _FAMILIES.get(major, "undefined")


def _family(capability: ComputeCapability) -> Mapping[str, str]:
    if capability.major < 1:
        return {}
    return {
        "gpu.family": family_of(capability),
        "gpu.compute.major": str(capability.major),
        "gpu.compute.minor": str(capability.minor),
    }


def _is_invalid(inventory: Inventory, pools: Mapping[str, Pool], strategy: MigStrategy) -> bool:
    """Whether the layout does not fit the strategy single: then nothing is served, though there are GPUs."""
    is_split = any(gpu.mig_enabled for gpu in inventory.gpus)
    serves = any(pool.base == names.RESOURCE_GPU and pool.shares for pool in pools.values())
    return strategy is MigStrategy.SINGLE and is_split and not serves


def _whole_gpu_pool(pools: Mapping[str, Pool], gpus: Sequence[GPU]) -> Pool | None:
    pool = sharing.sharing_pool(pools, names.RESOURCE_GPU, (gpu.index for gpu in gpus))
    return pool if pool is not None and all(share.mig_index is None for share in pool.shares) else None
