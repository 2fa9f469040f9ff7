"""Which nodes carry the taint that keeps plain pods away from fractions. Called by `build`.

In the words of HAMi a pod with a fraction asks for `nvidia.com/gpu`, as one that wants a whole GPU does: without the taint,
the latter could land on a node that only has slots.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gpushare.domain.fractions import Dialect, FractionMode
from gpushare.domain.gpunode import GPUNode
from gpushare.plan import catalogs
from gpushare.plan.fleet import Member
from gpushare.plan.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTaint:
    """A taint to set on a Node, or to take from it."""

    name: str
    uid: str
    present: bool


def build_taints(snapshot: Snapshot, members: Iterable[Member]) -> tuple[NodeTaint, ...]:
    """What has to change, in order of name. `members`: the nodes that are served; nobody else has the taint."""
    stored = {gpu_node.name: gpu_node for gpu_node in snapshot.gpu_nodes}
    wanted = {member.node.name for member in members if _gives_out_slots(member, stored.get(member.node.name))}
    return tuple(_changes(snapshot, wanted))


def _changes(snapshot: Snapshot, wanted: set[str]) -> Iterator[NodeTaint]:
    for node in sorted(snapshot.nodes, key=lambda node: node.name):
        if node.tainted != (node.name in wanted):
            yield NodeTaint(name=node.name, uid=node.uid, present=not node.tainted)


def _gives_out_slots(member: Member, stored: GPUNode | None) -> bool:
    """Before the agent begins to, and until it has ended; never of a node whose agent was opted out."""
    if member.progress is None:
        return False
    in_force = stored.status.fractions if stored is not None else None
    return _is_hami(in_force) or _is_hami(catalogs.fractions_of(member.assignment.config))


def _is_hami(mode: FractionMode | None) -> bool:
    return mode is not None and mode.dialect is Dialect.HAMI
