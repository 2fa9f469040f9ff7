"""A node and what stands on it, as the scheduler sees it. Kept by `standing`, read by filters and scores."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.loops import owners
from gpushare.sandbox.scheduling import amounts
from gpushare.sandbox.scheduling.amounts import Amounts


@dataclass(slots=True)
class Room:
    """What is left on a node."""

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

    def leave(self, pod: Manifest, asked: Amounts) -> None:
        """Counts a pod that was here as gone."""
        for name, amount in asked.items():
            self.used[name] -= amount
        owner = owners.controller_of(pod)
        if owner is not None:
            self.siblings -= Counter({owner["uid"]: 1})

    def free(self, resource: str) -> int:
        """How much of a resource is left; negative when a node has shrunk under its pods."""
        return self.allocatable.get(resource, 0) - self.used.get(resource, 0)
