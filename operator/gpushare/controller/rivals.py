"""Looks for other operators: NVIDIA's is at work while it renews its Lease, that of a GPUCluster while there is one.

Called by `syncing`, and by `reconciling` before something is taken over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Final

from gpushare import names
from gpushare.controller.snapshotting import Store
from gpushare.domain import manifests
from gpushare.errors import ClusterRefused
from gpushare.kube.cluster import Cluster

FRESH_SECONDS: Final = 60.0
"""It renews every few seconds; more than that only where clocks differ. Afterwards it is gone, whatever it left behind."""
_ABSENT: Final = frozenset({403, 404})


async def look(cluster: Cluster, store: Store) -> None:
    """Brings the store up to date: GPUClusters, our namespace, and those from which a policy says that it is followed."""
    store.gpu_clusters = await _list_gpu_clusters(cluster)
    policies = store.snapshot().policies
    namespaces = {store.settings.namespace, *(policy.namespace for policy in policies if policy.namespace)}
    store.nvidia_operators = await find_nvidia_operators(cluster, namespaces)


async def find_nvidia_operators(
    cluster: Cluster, namespaces: Iterable[str], now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> frozenset[str]:
    """In which of these namespaces NVIDIA's operator is at work.

    Raises ClusterUnavailable. Where we may not look, nobody is seen.
    """
    return frozenset([namespace for namespace in namespaces if await _is_at_work(cluster, namespace, now())])


async def _is_at_work(cluster: Cluster, namespace: str, now: datetime) -> bool:
    try:
        lease = await cluster.get(manifests.LEASE, names.LEASE_NVIDIA_OPERATOR, namespace)
    except ClusterRefused as error:
        if error.code in _ABSENT:
            return False
        raise
    spec = (lease or {}).get("spec") or {}
    # Who ends in peace gives the Lease back.
    if not spec.get("holderIdentity") or not spec.get("renewTime"):
        return False
    return (now - datetime.fromisoformat(spec["renewTime"])).total_seconds() < FRESH_SECONDS


async def _list_gpu_clusters(cluster: Cluster) -> tuple[str, ...]:
    try:
        return tuple(sorted(await cluster.names(manifests.GPU_CLUSTER)))
    except ClusterRefused as error:
        # Almost no cluster has the kind, and where we may not see it, it does not concern us.
        if error.code in _ABSENT:
            return ()
        raise
