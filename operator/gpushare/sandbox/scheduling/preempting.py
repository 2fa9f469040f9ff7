"""Which less important pods would have to go for a pod that fits nowhere, and on which node fewest is lost. Pure.

As in a real scheduler, but for PodDisruptionBudgets, which it only prefers to keep.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.scheduling import filtering
from gpushare.sandbox.scheduling.amounts import Amounts
from gpushare.sandbox.scheduling.filtering import Filtered
from gpushare.sandbox.scheduling.rooms import Room

Tenant: TypeAlias = tuple[Manifest, Amounts]
"""A pod, and what it takes from its node."""
Victims: TypeAlias = Mapping[str, Sequence[Manifest]]
"""By node."""


def is_eligible(pod: Manifest, nominated: str, tenants: Iterable[Tenant]) -> bool:
    """Whether a pod may have others evicted: not while those on its way out have not left the node yet."""
    if pod["spec"].get("preemptionPolicy") == "Never":
        return False
    return not any(
        nominated and other["metadata"].get("deletionTimestamp") and priority_of(other) < priority_of(pod)
        for other, _ in tenants
    )


def find_victims(
    pod: Manifest, asked: Amounts, filtered: Filtered, rooms: Mapping[str, Room], tenants: Mapping[str, list[Tenant]]
) -> Victims:
    """On each node where it helps, the pods that have to go; never none. Nodes that went meanwhile have no room."""
    found = {
        name: _victims_on(pod, asked, rooms[name], tenants.get(name, []))
        for name, refusal in filtered.refused.items()
        if not refusal.is_final and name in rooms
    }
    return {name: victims for name, victims in found.items() if victims}


def choose_node(victims: Victims) -> str | None:
    """Where the most important victim is the least important, then fewest importance is lost, then fewest pods."""

    def loss(name: str) -> tuple[int, int, int, str]:
        priorities = [priority_of(pod) for pod in victims[name]]
        return max(priorities), sum(priorities), len(priorities), name

    return min(victims, key=loss, default=None)


def priority_of(pod: Manifest) -> int:
    """How important a pod is."""
    return int(pod["spec"].get("priority") or 0)


def _victims_on(pod: Manifest, asked: Amounts, room: Room, tenants: Sequence[Tenant]) -> list[Manifest]:
    lower = [each for each in tenants if priority_of(each[0]) < priority_of(pod)]
    left = _with(replace(room, used={}), (each for each in tenants if each not in lower))
    if not lower or not _fits(pod, asked, left):
        return []
    victims = []
    for tenant in sorted(lower, key=_rank):
        # The most important ones first: each stays where there is room for it beside the pod.
        fuller = _with(left, [tenant])
        if _fits(pod, asked, fuller):
            left = fuller
        else:
            victims.append(tenant[0])
    return victims


def _with(room: Room, tenants: Iterable[Tenant]) -> Room:
    fuller = replace(room, used=dict(room.used), siblings=room.siblings.copy())
    for pod, asked in tenants:
        fuller.take(pod, asked)
    return fuller


def _fits(pod: Manifest, asked: Amounts, room: Room) -> bool:
    return bool(filtering.build_filtered(pod, asked, {room.name: room}).fitting)


def _rank(tenant: Tenant) -> tuple[int, str]:
    pod, _ = tenant
    return -priority_of(pod), (pod.get("status") or {}).get("startTime") or pod["metadata"]["creationTimestamp"]
