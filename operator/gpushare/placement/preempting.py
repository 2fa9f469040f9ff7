"""Which pods would have to go so that another one fits on a node. Asked by the extender's `preempt`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gpushare.placement.fitting import fit
from gpushare.placement.nodes import NodeState
from gpushare.placement.quotas import UNLIMITED, Quota
from gpushare.placement.shapes import PodRequest

_LEAST: Final = -(2**31)
"""The lowest priority that there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Removable:
    """A pod that may be removed for the sake of another one, which is more important."""

    uid: str
    priority: int = 0
    started: str = ""
    """RFC 3339; who has run longest stays, of those that are equally important."""


def choose_victims(
    node: NodeState, request: PodRequest, removable: Iterable[Removable], room: Quota = UNLIMITED
) -> tuple[Removable, ...] | None:
    """The pods to remove, the least important possible and of those the fewest; None: even without all of them it does not fit.

    Empty where it fits as it is. Pods that hold no GPU of the node are never among them.
    """
    # The most important first, and of equals whoever started first: they are spared before the others.
    held = sorted((pod for pod in removable if pod.uid in node.pods), key=lambda pod: pod.started)
    held.sort(key=lambda pod: pod.priority, reverse=True)
    parts = [node]
    if all(container.gpus == 1 for container in request.steps):
        # Room on one certain GPU may cost fewer pods than going through those of all GPUs by their importance.
        parts += [_only(node, position) for position in range(len(node.gpus))]
    found = (_spare(part, request, held, room) for part in parts)
    # Asked of the whole node, since one GPU alone does not show everything that counts.
    helpful = (victims for victims in found if victims is not None and _helps(node, request, victims, room))
    return min(helpful, key=_cost, default=None)


def _helps(node: NodeState, request: PodRequest, victims: Sequence[Removable], room: Quota) -> bool:
    for victim in victims:
        node = node.without_pod(victim.uid)
    return fit(node, request, room).containers is not None


def _spare(
    node: NodeState, request: PodRequest, pods: Sequence[Removable], room: Quota
) -> tuple[Removable, ...] | None:
    """Takes all pods away, then gives back each that is not in the way."""
    uuids = {gpu.uuid for gpu in node.gpus}
    pods = [pod for pod in pods if not uuids.isdisjoint(node.pods[pod.uid])]
    left = node
    for pod in pods:
        left = left.without_pod(pod.uid)
    if fit(left, request, room).containers is None:
        return None
    victims = []
    for pod in pods:
        spared = left.with_pod(pod.uid, node.pods[pod.uid])
        if fit(spared, request, room).containers is None:
            victims.append(pod)
        else:
            left = spared
    return tuple(victims)


def _only(node: NodeState, position: int) -> NodeState:
    return replace(node, gpus=(node.gpus[position],), uses=(node.uses[position],), topology=None)


def _cost(victims: Sequence[Removable]) -> tuple[int, int]:
    """As kube-scheduler compares nodes: who is hit hardest, then how many are, and how hard."""
    priorities = [pod.priority for pod in victims]
    return (max(priorities, default=_LEAST), sum(priority - _LEAST for priority in priorities))
