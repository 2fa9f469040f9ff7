"""Labels that say how a resource is shared: replicas, strategy, the suffix of the product, and whether MPS is in use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpushare import names
from gpushare.domain.devices import Inventory
from gpushare.domain.pools import Pool, Share, Strategy
from gpushare.labels.values import with_suffix


def build_labels(prefix: str, product: str, pool: Pool | None, *, unshared: int = 1) -> Mapping[str, str]:
    """Labels of one resource, `prefix` being `gpu` or `mig-<profile>`.

    The suffix is for people who select nodes by product where the resource name does not tell; so a renamed resource
    (`nvidia.com/gpu.shared`) has none. `pool` is the one that shares the devices, None where nothing does; then `unshared`
    is the number of replicas, 0 where whole devices are not what is given out.
    """
    if pool is None:
        return {
            f"{prefix}.product": product,
            f"{prefix}.replicas": str(unshared),
            f"{prefix}.sharing-strategy": Strategy.NONE.value,
        }
    return {
        f"{prefix}.product": product if pool.renamed else with_suffix(product, names.SUFFIX_SHARED),
        f"{prefix}.replicas": str(pool.replicas),
        f"{prefix}.sharing-strategy": pool.strategy.value,
    }


def build_fractions(pools: Mapping[str, Pool]) -> Mapping[str, str]:
    """In whose words pods ask for parts of the node's GPUs, and what holds them to these; nothing where none are given out."""
    mode = next((pool.fractions for pool in pools.values() if pool.fractions is not None), None)
    return {"gpu.fractions": mode.dialect.value, "gpu.isolation": mode.isolation.value} if mode is not None else {}


def build_capability(inventory: Inventory, pools: Mapping[str, Pool]) -> Mapping[str, str]:
    """`mps.capable`: the MPS daemon is wanted on this node. Its DaemonSet selects by it."""
    wanted = any(pool.strategy is Strategy.MPS for pool in pools.values())
    is_split = any(gpu.mig_enabled for gpu in inventory.gpus)
    return {"mps.capable": str(wanted and not is_split).lower()}


def sharing_pool(pools: Mapping[str, Pool], base: str, gpu_indices: Iterable[int]) -> Pool | None:
    """The pool that gives out shares of these GPUs under the base name, or under what it was renamed to."""
    indices = set(gpu_indices)
    return next(
        (
            pool
            for pool in pools.values()
            if pool.base == base and any(_is_share_of(share, indices) for share in pool.shares)
        ),
        None,
    )


def _is_share_of(share: Share, gpu_indices: set[int]) -> bool:
    return share.id.number is not None and share.gpu_index in gpu_indices
