"""A node and what stands on it, as the scheduler sees it during one pass. Called by the process, read by filters and scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.loops import owners
from gpushare.sandbox.scheduling import amounts
from gpushare.sandbox.scheduling.amounts import Amounts


@dataclass(slots=True)
class Room:
    """What is left on a node. Lives for one pass and shrinks while the pass places pods."""

    node: Manifest
    allocatable: Amounts
    used: Amounts = field(default_factory=dict)
    siblings: Counter[str] = field(default_factory=Counter)
    """Pods on the node by the uid of their controller, for spreading."""

    @property
    def name(self) -> str:
        """The node's name."""
        return str(self.node["metadata"]["name"])

    def take(self, pod: Manifest, asked: Amounts) -> None:
        """Counts a pod as being here."""
        amounts.add(self.used, asked)
        owner = owners.controller_of(pod)
        if owner is not None:
            self.siblings[owner["uid"]] += 1

    def free(self, resource: str) -> int:
        """How much of a resource is left; negative when a node has shrunk under its pods."""
        return self.allocatable.get(resource, 0) - self.used.get(resource, 0)


def build_rooms(
    nodes: Iterable[Manifest], read: Callable[[Manifest], Amounts] = amounts.allocatable
) -> dict[str, Room]:
    """Empty rooms, by node name. `read`: what a node offers, for a caller that remembers it."""
    return {node["metadata"]["name"]: Room(node, read(node)) for node in nodes}
