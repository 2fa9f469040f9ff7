"""What an agent knows at one moment, and what follows from it. Pure; told by its reports and metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpushare.agent import allocations
from gpushare.agent.deciding import Decision
from gpushare.domain.devices import Inventory
from gpushare.domain.gpunode import ContainerAllocation, ResourceStatus
from gpushare.domain.pools import Pool
from gpushare.domain.troubles import Trouble
from gpushare.errors import Problem
from gpushare.kubelet.counting import Counts as KubeletCounts
from gpushare.kubelet.lifecycle import Standing
from gpushare.kubelet.values import ContainerDevices

if TYPE_CHECKING:
    from gpushare.agent.fractions.reporting import Holdings
    from gpushare.allocation.topology import Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What has happened since the agent started."""

    errors: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """Reports of GPUs by UUID, empty where that is not known, and XID."""
    reloads: Mapping[str, int] = field(default_factory=dict)
    """Configurations that the agent was given: `applied`, `refused`, `unchanged`."""
    kubelet: KubeletCounts = field(default_factory=KubeletCounts)
    refusals: Mapping[str, int] = field(default_factory=dict)
    """What was refused to the kubelet while the node gives out fractions, by reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that is told of a node, at one moment."""

    decision: Decision
    generation: int | None
    """Of the GPUNode whose configuration was decided on."""
    inventory: Inventory | None
    failure: str
    """Why the driver does not answer; empty when it does."""
    pools: Mapping[str, Pool]
    standings: Mapping[str, Standing]
    link_problems: Sequence[Problem] = ()
    """What is odd about the links between GPUs: notes, for no GPU is sick for it."""
    topology: Topology | None = None
    """How the GPUs are connected; None: not read yet."""
    waiting: Mapping[str, str] = field(default_factory=dict)
    """Why the shares of a resource are not offered while its MPS daemon does not run; empty where it does."""
    holders: Sequence[ContainerDevices] = ()
    reported: Sequence[ContainerAllocation] | None = None
    """Who held what by the last report of an agent before this one; None: the kubelet has told since."""
    labels: Mapping[str, str] = field(default_factory=dict)
    troubles: Sequence[Trouble] = ()
    """What is wrong with devices; their health says so too, without the causes."""
    streams: Mapping[str, int] = field(default_factory=dict)
    """How many clients follow the list of each resource."""
    counts: Counts = field(default_factory=Counts)
    fractions: Holdings = field(default_factory=dict)
    """What is known besides ids of those who hold parts of GPUs."""


def build_resources(pools: Mapping[str, Pool], holders: Iterable[ContainerDevices]) -> tuple[ResourceStatus, ...]:
    """What the kubelet is offered, and how much of it is in use."""
    in_use = allocations.count_allocated(holders)
    return tuple(
        ResourceStatus(
            name=name,
            strategy=pool.strategy,
            replicas=pool.replicas,
            total=len(pool.shares),
            healthy=pool.healthy,
            allocated=in_use.get(name, 0),
        )
        for name, pool in sorted(pools.items())
    )


def find_overuse(facts: Facts) -> Iterator[Problem]:
    """Resources of which more is in use than they have, as after a configuration with fewer shares."""
    for resource in build_resources(facts.pools, facts.holders):
        if resource.allocated > resource.total:
            message = (
                f"{resource.allocated} of {resource.name} are in use and {resource.total} are offered: "
                "running pods stay, new ones wait"
            )
            yield Problem(path="", message=message)


def find_waiting(facts: Facts) -> tuple[Problem, ...]:
    """Resources whose shares wait for their MPS daemon."""
    return tuple(
        Problem(path="sharing.mps", message=f"the shares of {name} are not offered: {reason}")
        for name, reason in sorted(facts.waiting.items())
        if reason
    )
