"""What is counted for metrics: the active policy, and each node with its configuration and what is wrong with it.

Read from what is stored, whenever somebody asks: that is what people see too, and no pass has to keep anything for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from gpushare import names
from gpushare.domain.conditions import Condition
from gpushare.domain.gpunode import Config, GPUNode
from gpushare.plan import policies, status
from gpushare.plan.snapshot import Policy, Snapshot

READY: Final = 1
NOT_READY: Final = 0
FAILED: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFigures:
    """One node that an agent serves."""

    node: str
    config: Config
    unmet: tuple[Condition, ...] = ()
    """Conditions of its GPUNode that are not as they should be; all of them are true where all is well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The cluster as the controller sees it at one moment."""

    policy: str = ""
    """The active one; empty: there is none."""
    reconciliation: int = FAILED
    """`READY`, `NOT_READY` or, without a policy too, `FAILED`: the figures of NVIDIA's operator."""
    conditions: tuple[Condition, ...] = ()
    """Of the active policy."""
    gpu_nodes: int = 0
    discovered: bool = False
    """Whether node feature discovery labels nodes."""
    nodes: tuple[NodeFigures, ...] = ()


def build_figures(snapshot: Snapshot) -> Figures:
    """Counts what is stored."""
    active = policies.choose(snapshot).active
    return Figures(
        policy=active.name if active is not None else "",
        reconciliation=_reconciliation_of(active),
        conditions=active.conditions if active is not None else (),
        gpu_nodes=sum(node.labels.get(names.LABEL_PRESENT) == "true" for node in snapshot.nodes),
        discovered=any(node.discovered for node in snapshot.nodes),
        nodes=tuple(_figures_of(snapshot.gpu_nodes)),
    )


def _reconciliation_of(policy: Policy | None) -> int:
    if policy is None:
        return FAILED
    if policy.state == status.STATE_READY:
        return READY
    failed = any(each.type == status.ERROR and each.reason == status.RECONCILE_FAILED for each in policy.conditions)
    return FAILED if failed else NOT_READY


def _figures_of(gpu_nodes: Iterable[GPUNode]) -> Iterable[NodeFigures]:
    for gpu_node in gpu_nodes:
        unmet = tuple(each for each in gpu_node.status.conditions if each.status == "False")
        yield NodeFigures(node=gpu_node.name, config=gpu_node.config or Config(), unmet=unmet)
