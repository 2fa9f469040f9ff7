"""What containers have of the node's GPUs, for the status of its GPUNode: the scheduler goes by it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from gpushare.agent.fractions.flight import Flight
from gpushare.domain.fractions import Grant


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What one container has, and for which pod it is certain."""

    pod_uid: str
    grants: Mapping[str, Grant]
    """By UUID of the GPU."""
    resource: str
    told: bool = True
    """Whether the kubelet tells of it; it does not of containers that end before the others begin."""


Holdings: TypeAlias = Mapping[tuple[str, str, str], Holding]
"""By namespace, pod and container."""


def build_holdings(flight: Flight) -> Holdings:
    """Of every container that was given something."""
    return dict(_holdings(flight))


def _holdings(flight: Flight) -> Iterator[tuple[tuple[str, str, str], Holding]]:
    for pod in flight.pods.values():
        if pod.decision is None or pod.ended:
            continue
        told = [name for name in pod.decision.containers if (pod.uid, name) in flight.held]
        # One that has only such containers is confirmed by the kubelet's letting it in.
        untold = pod.decision.containers.keys() if pod.started and pod.decision.containers.keys() <= pod.inits else ()
        for name in told or untold:
            grants = {grant.uuid: grant for grant in flight.grants(pod, name)}
            holding = Holding(pod_uid=pod.uid, grants=grants, resource=flight.resource, told=bool(told))
            yield (pod.namespace, pod.name, name), holding
