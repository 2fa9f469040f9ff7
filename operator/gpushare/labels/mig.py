"""Labels of MIG instances: of `nvidia.com/gpu` with the strategy single, one set a profile with mixed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpushare import names
from gpushare.domain.devices import GPU, Inventory, MigInstance, MigStrategy
from gpushare.domain.pools import Pool
from gpushare.labels import sharing
from gpushare.labels.models import prevailing
from gpushare.labels.values import sanitise, with_suffix


@dataclass(frozen=True, slots=True)
class _Instance:
    gpu: GPU
    mig: MigInstance

    @property
    def product(self) -> str:
        return self.gpu.product


def build_labels(inventory: Inventory, pools: Mapping[str, Pool], strategy: MigStrategy) -> Mapping[str, str]:
    """Labels of the instances that pools serve; those that fit no resource have none."""
    if strategy is MigStrategy.NONE:
        return {}
    served = _served(inventory, pools)
    return {key: value for base in sorted(served) for key, value in _labels(base, served[base], pools)}


def _served(inventory: Inventory, pools: Mapping[str, Pool]) -> Mapping[str, list[_Instance]]:
    instances = {(gpu.index, mig.index): _Instance(gpu, mig) for gpu in inventory.gpus for mig in gpu.mig}
    found: dict[str, dict[tuple[int, int], _Instance]] = {}
    for pool in pools.values():
        for share in pool.shares:
            if share.mig_index is not None and (share.gpu_index, share.mig_index) in instances:
                place = (share.gpu_index, share.mig_index)
                found.setdefault(pool.base, {})[place] = instances[place]
    return {base: [of_base[place] for place in sorted(of_base)] for base, of_base in found.items()}


def _labels(base: str, served: list[_Instance], pools: Mapping[str, Pool]) -> Iterator[tuple[str, str]]:
    instances = prevailing(served)
    mig = instances[0].mig
    profile = mig.profile.replace("+", ".").replace(",", ".")
    product = with_suffix(sanitise(instances[0].product), f"-MIG-{profile}")
    pool = sharing.sharing_pool(pools, base, (instance.gpu.index for instance in instances))
    prefix = base.removeprefix(names.PREFIX)
    yield from sharing.build_labels(prefix, product, pool).items()
    facts = {
        "count": len(instances),
        "memory": mig.memory_mib,
        "multiprocessors": mig.multiprocessors,
        "slices.gi": mig.gpu_slices,
        "slices.ci": mig.compute_slices,
        "engines.copy": mig.engines.copy,
        "engines.decoder": mig.engines.decoder,
        "engines.encoder": mig.engines.encoder,
        "engines.jpeg": mig.engines.jpeg,
        "engines.ofa": mig.engines.ofa,
    }
    for fact, value in facts.items():
        yield f"{prefix}.{fact}", str(value)
