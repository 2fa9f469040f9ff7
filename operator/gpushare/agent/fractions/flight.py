"""Which pods of the node are on their way between their binding and the kubelet's answer, and for which of them an Allocate is.

Never guesses. The scheduler lets only pods be on their way together that may be taken for each other; where there is more than
one answer all the same, there is none. Pure; guarded by `answering`, which asks from several threads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gpushare.agent.fractions.pods import BoundPod, size_of
from gpushare.domain.fractions import FractionMode, Grant
from gpushare.domain.shares import device_of
from gpushare.kubelet.values import ContainerDevices
from gpushare.sharing.fractions import REQUESTED
from gpushare.sharing.limits import grants_of
from gpushare.sharing.responses import RequestRefused

_Place = tuple[str, str]
"""Uid of a pod, and one of its containers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One container that is about to get its ids."""

    pod: BoundPod
    container: str
    grants: tuple[Grant, ...]
    """Where it is planned to be."""

    @property
    def place(self) -> _Place:
        """What the flight knows it by."""
        return self.pod.uid, self.container

    @property
    def title(self) -> str:
        """For people."""
        return f"container {self.container} of {self.pod.title}"


@dataclass(frozen=True, slots=True)
class _Given:
    """An Allocate that was answered, and of which nobody has told yet whose it was."""

    entry: Entry
    """For which it was taken; of pods that may be taken for each other, it may be another one's."""
    ids: frozenset[str]


class Flight:
    """The pods of one node in one mode."""

    def __init__(self, mode: FractionMode) -> None:
        self.mode = mode
        self.resource = REQUESTED[mode.dialect]
        self.pods: dict[str, BoundPod] = {}
        """By uid, in the order in which they were seen."""
        self.held: dict[_Place, Mapping[str, int]] = {}
        """Ids by device, as the kubelet tells; only where it is certain that it means this pod and not one before it."""
        self._known_first: frozenset[str] | None = None
        """Pods that were there before us: what was answered for them is not known."""
        self._landed: set[str] = set()
        """Pods of which the kubelet has told, or which it has started."""
        self._plans: dict[_Place, tuple[Grant, ...]] = {}
        """Where it is not what was decided."""
        self._given: list[_Given] = []

    @property
    def awaits_kubelet(self) -> bool:
        """Whether an Allocate was answered, and nobody has told yet whose it was."""
        return bool(self._given)

    def see_all(self, pods: Iterable[BoundPod], version: int) -> None:
        """Everything that is there at a version of the cluster; what is not among it has gone, unless it came later."""
        found = {pod.uid: pod for pod in pods}
        if self._known_first is None:
            self._known_first = frozenset(found)
        for uid in [uid for uid, pod in self.pods.items() if uid not in found and pod.version <= version]:
            self.forget(uid)
        for pod in found.values():
            self.see(pod)

    def see(self, pod: BoundPod) -> None:
        """A pod as it is now; an older state of it changes nothing."""
        before = self.pods.get(pod.uid)
        if before is not None and before.version > pod.version:
            return
        self.pods[pod.uid] = pod
        if pod.ended:
            self._drop(pod.uid)
        elif pod.started:
            self._land(pod, {})

    def forget(self, uid: str) -> None:
        """A pod that is gone."""
        self.pods.pop(uid, None)
        self._drop(uid)

    def see_holders(self, holders: Iterable[ContainerDevices]) -> None:
        """What the kubelet tells that containers hold."""
        by_name = {(pod.namespace, pod.name): pod for pod in self.pods.values() if not pod.ended}
        told: dict[str, dict[str, frozenset[str]]] = {}
        for holder in holders:
            pod = by_name.get((holder.namespace, holder.pod))
            ids = frozenset(holder.ids)
            if holder.resource == self.resource and pod is not None and self._is_certain(pod, ids):
                told.setdefault(pod.uid, {})[holder.container] = ids
        self.held = {(uid, name): _by_device(ids) for uid, of_pod in told.items() for name, ids in of_pod.items()}
        for uid, of_pod in told.items():
            pod = self.pods[uid]
            if pod.decision is not None:
                if of_pod.keys() >= pod.decision.containers.keys() - pod.inits:
                    self._land(pod, of_pod)
                for name in of_pod.keys() & pod.decision.containers.keys():
                    self._trade(pod, name, self.held[uid, name])

    def find(self, size: int) -> tuple[Entry, ...]:
        """The containers that an Allocate of so many ids may be for. Several only where each may be taken for the other.

        Raises:
            RequestRefused: there is none, or it cannot be told which one it is.
        """
        coming = [pod for pod in self.pods.values() if not self._has_come(pod)]
        decided = [pod for pod in coming if pod.decision is not None]
        strangers = [pod for pod in coming if pod.decision is None]
        entries = tuple(self._open(decided))
        if not entries:
            raise RequestRefused(self._why_none(size, strangers), reason="NotPlaced")
        suspects = [pod for pod in strangers if size in pod.asks.values()]
        shapes = {pod.decision.shape for pod in decided if pod.decision is not None}
        sizes = {size_of(entry.grants) for entry in entries}
        if suspects or len(shapes) > 1 or (len(decided) > 1 and len(sizes) > 1):
            titles = sorted({entry.pod.title for entry in entries} | {pod.title for pod in suspects})
            text = f"it cannot be told for which pod this is, of {' and '.join(titles)}, which differ"
            raise RequestRefused(text, reason="Ambiguous")
        if size_of(entries[0].grants) != size:
            decided_on = f"{entries[0].title} was given {size_of(entries[0].grants)}"
            raise RequestRefused(f"{size} of {self.resource} are asked for, and {decided_on}")
        # The containers of one pod come in their order, which tells them apart.
        return entries if len(decided) > 1 else entries[:1]

    def give(self, entry: Entry, ids: Iterable[str]) -> None:
        """An Allocate was answered."""
        self._given.append(_Given(entry, frozenset(ids)))

    def reopen(self, holders: Iterable[ContainerDevices]) -> None:
        """Takes back answers whose ids no pod has that is there: they were for one of whose end the kubelet had not heard yet.

        Only for what the kubelet tells while it waits for an answer that there would not be otherwise: it has written down all
        earlier ones then, but for those of init containers, of which it does not tell.
        """
        if any(self._open(pod for pod in self.pods.values() if not self._has_come(pod))):
            return
        names = {(pod.namespace, pod.name) for pod in self.pods.values()}
        held = {frozenset(each.ids) for each in holders if (each.namespace, each.pod) in names}
        self._given = [each for each in self._given if each.ids in held or each.entry.container in each.entry.pod.inits]

    def used(self, uuid: str) -> tuple[int, int]:
        """MiB and percent of compute of a GPU that are given out, as far as it is known where they are."""
        memory = cores = 0
        for pod in self.pods.values():
            if pod.decision is None or pod.ended:
                continue
            parts = [(name in pod.inits, grant) for name in pod.decision.containers for grant in self.grants(pod, name)]
            first = [grant for is_init, grant in parts if is_init and grant.uuid == uuid]
            then = [grant for is_init, grant in parts if not is_init and grant.uuid == uuid]
            # Those that end before the others begin take nothing from them.
            memory += max(*(grant.memory_mib for grant in first), sum(grant.memory_mib for grant in then), 0, 0)
            cores += max(*(grant.cores for grant in first), sum(grant.cores for grant in then), 0, 0)
        return memory, cores

    def grants(self, pod: BoundPod, container: str) -> tuple[Grant, ...]:
        """What a container has, or is planned to have."""
        plan, place = self._plan(pod, container), (pod.uid, container)
        counts = self.held.get(place) or next((_by_device(g.ids) for g in self._given if g.entry.place == place), None)
        return grants_of(self.mode, plan, counts) if counts else plan

    def _plan(self, pod: BoundPod, container: str) -> tuple[Grant, ...]:
        assert pod.decision is not None
        return self._plans.get((pod.uid, container), pod.decision.containers[container])

    def _open(self, pods: Iterable[BoundPod]) -> Iterator[Entry]:
        """Containers without an answer, in the order in which the kubelet comes to them."""
        given = {each.entry.place for each in self._given}
        for pod in pods:
            for name in pod.decision.containers if pod.decision is not None else ():
                if (pod.uid, name) not in given:
                    yield Entry(pod=pod, container=name, grants=self._plan(pod, name))

    def _has_come(self, pod: BoundPod) -> bool:
        return pod.started or pod.ended or pod.uid in self._landed

    def _is_certain(self, pod: BoundPod, ids: frozenset[str]) -> bool:
        """Whether the kubelet means this pod, and not one that had its name before: it tells no uids."""
        is_older = self._known_first is not None and pod.uid in self._known_first
        return is_older or pod.uid in self._landed or any(given.ids == ids for given in self._given)

    def _land(self, pod: BoundPod, told: Mapping[str, frozenset[str]]) -> None:
        """All that a pod needed has been answered: as many answers are settled, whichever pod they were taken for."""
        if pod.uid in self._landed or pod.decision is None:
            return
        self._landed.add(pod.uid)
        for name in pod.decision.containers:
            given = self._settle(pod, name, told.get(name))
            if given is not None:
                self._trade(pod, name, _by_device(given.ids))

    def _settle(self, pod: BoundPod, container: str, ids: frozenset[str] | None) -> _Given | None:
        place, shape = (pod.uid, container), pod.decision.shape if pod.decision is not None else ""
        if ids is not None:
            found = next((given for given in self._given if given.ids == ids), None)
        else:
            alike = [each for each in self._given if each.entry.pod.decision and each.entry.pod.decision.shape == shape]
            found = next((each for each in alike if each.entry.place == place), alike[0] if alike else None)
        if found is not None:
            self._given.remove(found)
        return found

    def _trade(self, pod: BoundPod, container: str, counts: Mapping[str, int]) -> None:
        """Where a pod has what was planned for another one that may be taken for it, that one gets what was planned here."""
        plan = self._plan(pod, container)
        if count_ids(plan) == counts or pod.decision is None:
            return
        like = [
            other
            for other in self.pods.values()
            if other.decision is not None and other.decision.shape == pod.decision.shape and not self._has_come(other)
        ]
        other = next((entry for entry in self._open(like) if count_ids(entry.grants) == counts), None)
        if other is not None:
            self._plans[other.place], self._plans[pod.uid, container] = plan, other.grants

    def _drop(self, uid: str) -> None:
        self._landed.discard(uid)
        self._given = [given for given in self._given if given.entry.pod.uid != uid]
        for places in (self._plans, self.held):
            for place in [place for place in places if place[0] == uid]:
                del places[place]

    def _why_none(self, size: int, strangers: Iterable[BoundPod]) -> str:
        for pod in strangers:
            if size in pod.asks.values():
                reason = pod.fault or "no scheduler of fractions has placed it"
                return (
                    f"{pod.title} is not let in: {reason}; leave schedulerName and nodeName to the admission of fractions, "
                    "and tolerations of its taint too"
                )
        return f"no pod that was placed on this node waits for {size} of {self.resource}"


def count_ids(grants: Iterable[Grant]) -> Mapping[str, int]:
    """How many ids of each GPU stand for grants."""
    return {grant.uuid: grant.units or 1 for grant in grants}


def _by_device(ids: Iterable[str]) -> Mapping[str, int]:
    return dict(Counter(map(device_of, ids)))
