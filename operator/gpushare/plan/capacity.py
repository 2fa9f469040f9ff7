"""Whether a Node shows what its agent offers, which is what schedulers go by. Called by `fleet`.

The kubelet writes its Node every ten seconds by default, so a difference means nothing at first. Since when there is one is
handed from pass to pass; only what lasts is written anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from gpushare.domain.conditions import Condition
from gpushare.domain.gpunode import CAPACITY_SHOWN, GPUNode, ResourceStatus
from gpushare.plan.snapshot import Node

GRACE: Final = timedelta(seconds=30)
"""Three times as long as the kubelet takes."""
_ON_ITS_WAY: Final = "the kubelet has not put its shares on the Node yet"
_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class Showing:
    """What a Node does not show."""

    since: str = ""
    """RFC 3339 time; empty: it shows everything."""
    remaining_seconds: float = 0.0
    """How long it has yet."""
    waits: str = ""
    """Why the node is not done; empty: it is, or only the health of devices is on its way."""
    condition: Condition | None = None
    """`CapacityShown`, without its times, once it has had time enough."""


def compare(node: Node, stored: GPUNode | None, since: str, now: str) -> Showing:
    """Compares capacity and allocatable of a Node with what its agent has told the kubelet.

    Args:
        node: as the kubelet wrote it.
        stored: what the agent tells. None, or without resources: there is nothing to compare.
        since: of the last comparison.
        now: RFC 3339 time.
    """
    resources = stored.status.resources if stored is not None else ()
    differences = tuple(_differences(node.resources, resources))
    if not differences:
        return Showing()
    told = next((each for each in stored.status.conditions if each.type == CAPACITY_SHOWN), None) if stored else None
    since = told.last_transition_time if told is not None else since or now
    remaining = _parsed(since) + GRACE - _parsed(now)
    if told is None and remaining > timedelta():
        counts = any(_shown(node.resources, each)[0] != each.total for each in resources)
        return Showing(since=since, remaining_seconds=remaining.total_seconds(), waits=_ON_ITS_WAY if counts else "")
    text = "; ".join(differences)
    message = f"{node.name}: {text}; see the kubelet's log, and whether another plugin offers the same"
    condition = Condition(type=CAPACITY_SHOWN, status="False", reason="CapacityDiffers", message=message)
    return Showing(since=since, waits=text, condition=condition)


def _differences(shown: Mapping[str, tuple[int, int]], resources: tuple[ResourceStatus, ...]) -> Iterator[str]:
    for resource in resources:
        capacity, allocatable = _shown(shown, resource)
        if capacity != resource.total:
            yield f"the Node shows {capacity} of {resource.name}, where {resource.total} are offered"
        elif allocatable != resource.healthy:
            yield f"the Node shows {allocatable} allocatable of {resource.name}, where {resource.healthy} are healthy"


def _shown(shown: Mapping[str, tuple[int, int]], resource: ResourceStatus) -> tuple[int, int]:
    return shown.get(resource.name, (0, 0))


def _parsed(time: str) -> datetime:
    return datetime.strptime(time, _TIME).replace(tzinfo=UTC)
