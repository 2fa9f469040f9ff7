"""Nodes as the scheduler of the sandbox sees them, with pods on them."""

from __future__ import annotations

from collections.abc import Iterable

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.scheduling import amounts
from gpushare.sandbox.scheduling.rooms import Room


def build_rooms(nodes: Iterable[Manifest], pods: Iterable[Manifest] = ()) -> dict[str, Room]:
    """What is left on each node, by its name, where `pods` are bound to some of them."""
    rooms = {node["metadata"]["name"]: Room(node, amounts.allocatable(node)) for node in nodes}
    for pod in pods:
        rooms[pod["spec"]["nodeName"]].take(pod, amounts.requested(pod))
    return rooms
