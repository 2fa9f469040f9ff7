"""Which of several nodes a pod goes to: wanted ones first, then those with fewer siblings, then the emptiest. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.loops import owners
from gpushare.sandbox.scheduling import affinity, amounts, taints
from gpushare.sandbox.scheduling.amounts import Amounts
from gpushare.sandbox.scheduling.rooms import Room

_TAINTS, _AFFINITY, _SPREAD, _EMPTY = 3, 2, 2, 1
"""Weights of a real scheduler's plugins of the same purpose; each score is a number from 0 to 1."""
_ASSUMED: Mapping[str, int] = {amounts.CPU: 100, amounts.MEMORY: 200 * 2**20}
"""What a pod that asks for nothing is taken for, so that such pods spread too."""


def choose(pod: Manifest, asked: Amounts, rooms: Sequence[Room], others: Mapping[str, float] | None = None) -> Room:
    """The best of at least one room. Of equals, where a real scheduler takes any, the last by name.

    `others`: what extenders think of the nodes, by name, weighted.
    """
    wanted = _scale([affinity.preference(pod["spec"], room.node) for room in rooms])
    avoided = _scale([_soft_taints(pod, room) for room in rooms])
    owner = owners.controller_of(pod)
    siblings = _scale([room.siblings[owner["uid"]] if owner else 0 for room in rooms])

    def score(index: int) -> float:
        return (
            _AFFINITY * wanted[index]
            + _TAINTS * (1 - avoided[index])
            + _SPREAD * (1 - siblings[index])
            + _EMPTY * _emptiness(asked, rooms[index])
            + (others or {}).get(rooms[index].name, 0.0)
        )

    return rooms[max(range(len(rooms)), key=lambda index: (score(index), rooms[index].name))]


def _scale(values: Sequence[int]) -> list[float]:
    most = max(values)
    return [value / most if most else 0.0 for value in values]


def _soft_taints(pod: Manifest, room: Room) -> int:
    tolerations = pod["spec"].get("tolerations") or []
    return len(taints.untolerated(room.node, tolerations, (taints.PREFER_NO_SCHEDULE,)))


def _emptiness(asked: Amounts, room: Room) -> float:
    """Mean share of cpu and memory that stays free. Extended resources do not count, as with a real scheduler's defaults."""
    return sum(_free_share(name, asked, room) for name in _ASSUMED) / len(_ASSUMED)


def _free_share(name: str, asked: Amounts, room: Room) -> float:
    whole = room.allocatable.get(name, 0)
    if not whole:
        return 0.0
    used = max(room.used.get(name, 0), _ASSUMED[name] * room.used.get(amounts.PODS, 0))
    left = whole - used - max(asked.get(name, 0), _ASSUMED[name])
    return max(0.0, left / whole)
