"""One taint among those of a Node. Used by `effects` and `cleaning`.

Taints are a list that is written as a whole, so what others have put there is read just before, and kept.
"""

from __future__ import annotations

from typing import Any, Final

from gpushare import names
from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.kube.cluster import Cluster

_TAINT: Final = {"key": names.TAINT_FRACTIONS, "effect": "NoSchedule"}


async def set_taint(cluster: Cluster, node: str, uid: str, *, present: bool) -> Manifest | None:
    """Sets our taint on a Node, or takes it away. Returns the Node; None where there was nothing to write, or no Node.

    Raises:
        Conflict: the Node changed meanwhile, or another one has its name.
    """
    # By a list, since that is what the controller may do.
    found = await cluster.list(manifests.NODE, fields=f"metadata.name={node}")
    if not found.items:
        return None
    before = (found.items[0].get("spec") or {}).get("taints") or []
    others = [taint for taint in before if taint.get("key") != names.TAINT_FRACTIONS]
    after = [*others, _TAINT] if present else others
    if len(before) == len(after):
        return None
    metadata: dict[str, Any] = {"uid": uid, "resourceVersion": found.items[0]["metadata"]["resourceVersion"]}
    return await cluster.patch(manifests.NODE, node, {"metadata": metadata, "spec": {"taints": after}})
