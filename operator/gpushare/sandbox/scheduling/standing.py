"""What stands where, by watch and by what is just being bound. Shared by the schedulers of all profiles."""

from __future__ import annotations

from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.sandbox.loops.caches import Caches
from gpushare.sandbox.scheduling import amounts, rooms
from gpushare.sandbox.scheduling.amounts import Amounts
from gpushare.sandbox.scheduling.rooms import Room


class Standing:
    """Pods, nodes, and the room that is left."""

    def __init__(self, caches: Caches) -> None:
        self.pods = caches.of(manifests.POD)
        self.nodes = caches.of(manifests.NODE)
        self._assumed: dict[str, str] = {}
        """Node names by uid of pods that are being bound: their room is taken before the watch says so."""
        self._asked: dict[str, Amounts] = {}
        self._allocatable: dict[str, tuple[str, Amounts]] = {}
        """By node name, with the version of the Node: texts take longer to read than all else."""
        self.pods.listen(self._see)

    def requested(self, pod: Manifest) -> Amounts:
        """What a pod takes from its node."""
        uid = pod["metadata"]["uid"]
        if uid not in self._asked:
            self._asked[uid] = amounts.requested(pod)
        return self._asked[uid]

    def is_assumed(self, pod: Manifest) -> bool:
        """Whether a pod is being bound."""
        return pod["metadata"]["uid"] in self._assumed

    def assume(self, pod: Manifest, node: str) -> None:
        """The pod's room is taken from now on."""
        self._assumed[pod["metadata"]["uid"]] = node

    def give_up(self, pod: Manifest) -> None:
        """The pod could not be bound."""
        self._assumed.pop(pod["metadata"]["uid"], None)

    def build_rooms(self) -> dict[str, Room]:
        """What is left on each node, by its name."""
        cluster = rooms.build_rooms(self.nodes, self._allocatable_of)
        for name, tenants in self.tenants().items():
            if name in cluster:
                for pod, asked in tenants:
                    cluster[name].take(pod, asked)
        return cluster

    def _allocatable_of(self, node: Manifest) -> Amounts:
        name, version = node["metadata"]["name"], node["metadata"]["resourceVersion"]
        known = self._allocatable.get(name)
        if known is None or known[0] != version:
            known = self._allocatable[name] = (version, amounts.allocatable(node))
        return known[1]

    def tenants(self) -> dict[str, list[tuple[Manifest, Amounts]]]:
        """The pods of each node that take from it, with what they take."""
        found: dict[str, list[tuple[Manifest, Amounts]]] = {}
        for pod in self.pods:
            name = pod["spec"].get("nodeName") or self._assumed.get(pod["metadata"]["uid"])
            if name and amounts.is_counted(pod):
                found.setdefault(name, []).append((pod, self.requested(pod)))
        return found

    def _see(self, before: Manifest | None, after: Manifest | None) -> None:
        pod = after or before
        assert pod is not None
        if after is None or after["spec"].get("nodeName"):
            self.give_up(pod)
        if after is None:
            self._asked.pop(pod["metadata"]["uid"], None)
