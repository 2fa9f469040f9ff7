"""How the kubelet counts the containers of a pod on one GPU. For `fitting` before a pod is placed, for the books after.

Init containers run one after the other and before the rest, so what they need is not added to it; the kubelet gives their
shares to those who come next. Sidecars start among them and stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from gpushare.domain.fractions import Grant
from gpushare.placement.gpus import Holding, Use
from gpushare.placement.quotas import Charge
from gpushare.placement.shapes import WHOLE, Kind


class Tally(NamedTuple):
    """What the containers of one pod that were counted so far make of one GPU."""

    memory_mib: int = 0
    """Of those that stay: sidecars and app containers."""
    cores: int = 0
    slots: int = 0
    most_memory_mib: int = 0
    """The most at any moment, init containers included: what the pod is charged with."""
    most_cores: int = 0
    held: int = 0
    """Different shares that the kubelet has given to the pod."""
    reusable: int = 0
    """1 where one of them was an init container's and goes to the next one that asks."""
    alone: int = 0
    """2 where a container that stays wants the GPU for itself, 1 where only an init container did."""
    unlimited: int = 0
    """1 where a container has no limit of compute."""

    def plus(self, kind: Kind, memory_mib: int, cores: int) -> Tally:
        """One container more on the GPU."""
        memory, compute = self.memory_mib + memory_mib, self.cores + cores
        stays = kind is not Kind.INIT
        return Tally(
            memory_mib=memory if stays else self.memory_mib,
            cores=compute if stays else self.cores,
            slots=self.slots + stays,
            most_memory_mib=max(self.most_memory_mib, memory),
            most_cores=max(self.most_cores, compute),
            held=self.held + (not self.reusable),
            reusable=int(not stays),
            alone=max(self.alone, 1 + stays if cores >= WHOLE else 0),
            unlimited=int(self.unlimited or cores == 0),
        )

    @property
    def use(self) -> Use:
        """What the pod takes of the GPU."""
        return Use(self.most_memory_mib, self.most_cores, self.held, min(self.alone, 1), self.unlimited)


NOTHING: Final = Tally()


def holding_of(containers: Mapping[str, tuple[Grant, ...]], kinds: Mapping[str, Kind]) -> Holding:
    """What a pod takes by its grants, as a decision or the kubelet tells them; the same as it was placed by.

    Args:
        containers: in the order in which the kubelet allocates.
        kinds: of all containers; one that is missing counts as an app container.
    """
    tallies: dict[str, Tally] = {}
    for name, grants in containers.items():
        for grant in grants:
            tally = tallies.get(grant.uuid, NOTHING)
            tallies[grant.uuid] = tally.plus(kinds.get(name, Kind.APP), grant.memory_mib, grant.cores)
    return {uuid: tally.use for uuid, tally in tallies.items()}


def charge_of(containers: Mapping[str, tuple[Grant, ...]], kinds: Mapping[str, Kind]) -> Charge:
    """What the quota of a pod's namespace is charged with: the most at any moment, of all its GPUs together."""
    total = NOTHING
    for name, grants in containers.items():
        # Units of memory are none of this quota's words; Kubernetes itself counts them right.
        counted = [grant for grant in grants if not grant.units]
        memory, cores = sum(grant.memory_mib for grant in counted), sum(grant.cores for grant in counted)
        total = total.plus(kinds.get(name, Kind.APP), memory, cores)
    return Charge(total.most_memory_mib, total.most_cores)
