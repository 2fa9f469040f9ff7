"""Simulated nodes in somebody else's cluster: never in the place of a real one, and gone when the sandbox ends.

Called by `app` where a kubeconfig is given.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gpushare import names
from gpushare.domain import manifests
from gpushare.errors import ConfigurationError, Problem
from gpushare.kube.cluster import Cluster
from gpushare.sandbox.node.specs import NodeSpec


def mark(spec: NodeSpec) -> NodeSpec:
    """The same node with the label by which it is known as simulated, by people and by `remove`."""
    return replace(spec, labels={**spec.labels, names.LABEL_SIMULATED: "true"})


async def check(cluster: Cluster, wanted: Iterable[str]) -> None:
    """Raises `ConfigurationError` where a node of that name is there and is not one of ours, left by an earlier sandbox."""
    problems = []
    for position, name in enumerate(wanted):
        found = await cluster.get(manifests.NODE, name)
        if found is not None and not _is_simulated(found):
            message = f'"{name}" is a node of that cluster already; give the simulated one another name (--scenario)'
            problems.append(Problem(path=f"nodes[{position}].name", message=message))
    if problems:
        raise ConfigurationError(problems)


async def remove(cluster: Cluster, wanted: Iterable[str]) -> None:
    """Deletes the nodes; the cluster's own controllers then remove their pods, and leases go with them."""
    for name in wanted:
        found = await cluster.get(manifests.NODE, name)
        if found is not None and _is_simulated(found):
            await cluster.delete(manifests.NODE, name, uid=found["metadata"]["uid"])


def _is_simulated(node: manifests.Manifest) -> bool:
    return (node["metadata"].get("labels") or {}).get(names.LABEL_SIMULATED) == "true"
