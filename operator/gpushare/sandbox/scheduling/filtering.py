"""Which nodes a pod could run on, and what speaks against each other one, in a real scheduler's words. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.scheduling import affinity, amounts, taints
from gpushare.sandbox.scheduling.amounts import Amounts
from gpushare.sandbox.scheduling.rooms import Room


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a pod does not fit on a node."""

    reasons: tuple[str, ...]
    is_final: bool
    """Nothing that other pods could give up would help."""


_ELSEWHERE = Refusal(("node(s) didn't satisfy plugin(s) [NodeAffinity]",), is_final=True)
"""A pod that names its node, as those of DaemonSets do, is not held against the others one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtered:
    """All nodes, told apart. A scheduler extender has its say on `fitting` before one is chosen."""

    fitting: tuple[Room, ...]
    refused: Mapping[str, Refusal]
    """By node name."""


def build_filtered(pod: Manifest, asked: Amounts, rooms: Mapping[str, Room]) -> Filtered:
    """Asks every node."""
    pinned = affinity.pinned_names(pod["spec"])
    fitting, refused = [], {}
    for name, room in rooms.items():
        if pinned is not None and name not in pinned:
            refusal: Refusal | None = _ELSEWHERE
        else:
            refusal = next(filter(None, (check(pod, asked, room) for check in _CHECKS)), None)
        if refusal is None:
            fitting.append(room)
        else:
            refused[name] = refusal
    return Filtered(fitting=tuple(fitting), refused=refused)


def _check_unschedulable(pod: Manifest, _asked: Amounts, room: Room) -> Refusal | None:
    if not room.node.get("spec", {}).get("unschedulable"):
        return None
    taint = {"key": taints.UNSCHEDULABLE, "effect": taints.NO_SCHEDULE}
    if taints.is_tolerated(taint, pod["spec"].get("tolerations") or []):
        return None
    return Refusal(("node(s) were unschedulable",), is_final=True)


def _check_taints(pod: Manifest, _asked: Amounts, room: Room) -> Refusal | None:
    tolerations = pod["spec"].get("tolerations") or []
    if taints.untolerated(room.node, tolerations, (taints.NO_SCHEDULE, taints.NO_EXECUTE)):
        return Refusal(("node(s) had untolerated taint(s)",), is_final=True)
    return None


def _check_affinity(pod: Manifest, _asked: Amounts, room: Room) -> Refusal | None:
    if affinity.is_wanted(pod["spec"], room.node):
        return None
    return Refusal(("node(s) didn't match Pod's node affinity/selector",), is_final=True)


def _check_resources(_pod: Manifest, asked: Amounts, room: Room) -> Refusal | None:
    short = [name for name, amount in asked.items() if amount > 0 and amount > room.free(name)]
    if not short:
        return None
    reasons = tuple("Too many pods" if name == amounts.PODS else f"Insufficient {name}" for name in short)
    too_big = any(asked[name] > room.allocatable.get(name, 0) for name in short if name != amounts.PODS)
    return Refusal(reasons, is_final=too_big)


_CHECKS: tuple[Callable[[Manifest, Amounts, Room], Refusal | None], ...] = (
    _check_unschedulable,
    _check_taints,
    _check_affinity,
    _check_resources,
)
"""In a real scheduler's order: the first one that says no gives the reason."""
