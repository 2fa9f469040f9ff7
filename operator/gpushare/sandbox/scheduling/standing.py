"""What stands where, by watch and by what is just being bound. Shared by the schedulers of all profiles."""

from __future__ import annotations

from typing import Any

from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.sandbox.loops import caches
from gpushare.sandbox.loops.caches import Caches
from gpushare.sandbox.scheduling import amounts
from gpushare.sandbox.scheduling.amounts import Amounts
from gpushare.sandbox.scheduling.rooms import Room


class Standing:
    """Pods, nodes, and the room that is left: kept up with each change, since with extenders each pod asks for it."""

    def __init__(self, known: Caches) -> None:
        """Made before the caches have anything in them."""
        self.pods = known.of(manifests.POD)
        self.nodes = known.of(manifests.NODE)
        self._assumed: dict[str, str] = {}
        """Node names by uid of pods that are being bound: their room is taken before the watch says so."""
        self._asked: dict[str, Amounts] = {}
        self.rooms: dict[str, Room] = {}
        """What is left on each node, by its name. Everybody's own: who wants to try something copies first."""
        self._places: dict[str, str] = {}
        """Nodes whose rooms count a pod, by its uid."""
        self.nodes.listen(self._see_node)
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
        self._settle(pod)

    def give_up(self, pod: Manifest) -> None:
        """The pod could not be bound."""
        self._assumed.pop(pod["metadata"]["uid"], None)
        self._settle(pod)

    def tenants(self) -> dict[str, list[tuple[Manifest, Amounts]]]:
        """The pods of each node that take from it, with what they take."""
        found: dict[str, list[tuple[Manifest, Amounts]]] = {}
        for pod in self.pods:
            if name := self._place_of(pod):
                found.setdefault(name, []).append((pod, self.requested(pod)))
        return found

    def _place_of(self, pod: Manifest) -> str:
        """The node that the pod takes from; empty where there is none."""
        name = pod["spec"].get("nodeName") or self._assumed.get(pod["metadata"]["uid"], "")
        return str(name) if amounts.is_counted(pod) else ""

    def _settle(self, pod: Manifest) -> None:
        """Brings the rooms up to where the pod is now, as the cache has it."""
        uid, now = pod["metadata"]["uid"], self.pods.get(caches.key_of(pod))
        place = self._place_of(now) if now is not None and now["metadata"]["uid"] == uid else ""
        before = self._places.get(uid, "")
        if place == before:
            return
        if before:
            del self._places[uid]
            if room := self.rooms.get(before):
                room.leave(pod, self.requested(pod))
        if place:
            self._places[uid] = place
            if room := self.rooms.get(place):
                room.take(pod, self.requested(pod))

    def _see_node(self, before: Manifest | None, after: Manifest | None) -> None:
        if after is None:
            assert before is not None
            del self.rooms[before["metadata"]["name"]]
            return
        name = after["metadata"]["name"]
        known = self.rooms.get(name)
        if known is None:
            room = self.rooms[name] = Room(after, amounts.allocatable(after))
            for pod, asked in self.tenants().get(name, ()):
                room.take(pod, asked)
            return
        # Texts take longer to read than all else.
        is_same = _allocatable_text(known.node) == _allocatable_text(after)
        known.node, known.allocatable = after, known.allocatable if is_same else amounts.allocatable(after)

    def _see(self, before: Manifest | None, after: Manifest | None) -> None:
        pod = after or before
        assert pod is not None
        if after is None or after["spec"].get("nodeName"):
            self._assumed.pop(pod["metadata"]["uid"], None)
        for each in (before, after):
            if each is not None:
                self._settle(each)
        if after is None:
            self._asked.pop(pod["metadata"]["uid"], None)


def _allocatable_text(node: Manifest) -> Any:
    return node.get("status", {}).get("allocatable")
