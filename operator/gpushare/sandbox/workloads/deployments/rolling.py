"""How large the ReplicaSets of a Deployment should be now: rollouts step by step, and scaling in the middle of one. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.workloads.deployments import replica_sets
from gpushare.sandbox.workloads.deployments.replica_sets import View


@dataclass(frozen=True, slots=True)
class Scaling:
    """One ReplicaSet and the size that it should get."""

    replica_set: Manifest
    replicas: int


def build_scalings(view: View) -> list[Scaling]:
    """The next step: sizes that change now. Empty when the Deployment has to wait for pods, or is done."""
    if view.deployment["spec"].get("paused") or _is_rescaled(view):
        return [scaling for scaling in _build_proportional(view) if _is_due(view, scaling)]
    if view.is_recreating:
        return _changes(_build_recreation(view))
    return _changes(_build_new_step(view)) or _changes(_build_old_step(view))


def first_replicas(view: View) -> int:
    """The size with which the ReplicaSet of a new template starts."""
    return view.replicas if view.is_recreating else min(view.replicas, max(0, _room(view)))


def may_start(view: View) -> bool:
    """Whether a new template may come into being: not while paused, nor, when recreating, before the last old pod has gone."""
    if view.deployment["spec"].get("paused"):
        return False
    is_empty = not any(map(replica_sets.spec_replicas, view.old)) and not view.has_old_pods
    return is_empty or not view.is_recreating


def _is_rescaled(view: View) -> bool:
    """Whether the Deployment's size has changed since its ReplicaSets were last scaled."""
    known = [replica_sets.desired_of(found) for found in view.all if replica_sets.spec_replicas(found)]
    return any(desired is not None and desired != view.replicas for desired in known)


def _room(view: View) -> int:
    return view.replicas + view.surge - sum(map(replica_sets.spec_replicas, view.all))


def _build_new_step(view: View) -> list[Scaling]:
    if view.new is None:
        return []
    size = replica_sets.spec_replicas(view.new)
    if size > view.replicas:
        return [Scaling(view.new, view.replicas)]
    return [Scaling(view.new, size + max(0, min(_room(view), view.replicas - size)))]


def _build_old_step(view: View) -> list[Scaling]:
    if view.new is None:
        return []
    least = view.replicas - view.unavailable
    pending = replica_sets.spec_replicas(view.new) - replica_sets.available_replicas(view.new)
    removable = sum(map(replica_sets.spec_replicas, view.all)) - least - pending
    sizes = {found["metadata"]["name"]: replica_sets.spec_replicas(found) for found in view.old}
    # First the pods that do not work: nobody misses them.
    for found in view.old:
        broken = sizes[found["metadata"]["name"]] - replica_sets.available_replicas(found)
        taken = max(0, min(removable, broken))
        sizes[found["metadata"]["name"]] -= taken
        removable -= taken
    # Then working ones, as far as enough of them stay.
    spare = min(removable, sum(map(replica_sets.available_replicas, view.all)) - least)
    for found in view.old:
        taken = max(0, min(spare, sizes[found["metadata"]["name"]]))
        sizes[found["metadata"]["name"]] -= taken
        spare -= taken
    return [Scaling(found, sizes[found["metadata"]["name"]]) for found in view.old]


def _build_recreation(view: View) -> list[Scaling]:
    down = _changes([Scaling(found, 0) for found in view.old])
    if down or view.has_old_pods or view.new is None:
        return down
    return [Scaling(view.new, view.replicas)]


def _build_proportional(view: View) -> list[Scaling]:
    active = [found for found in view.all if replica_sets.spec_replicas(found)]
    if len(active) <= 1:
        only = active[0] if active else view.new or (view.old[-1] if view.old else None)
        return [Scaling(only, view.replicas)] if only is not None else []
    if view.new is not None and _is_saturated(view):
        return [Scaling(found, 0) for found in active if found is not view.new]
    return [] if view.is_recreating else _share_out(view, active)


def _share_out(view: View, active: Sequence[Manifest]) -> list[Scaling]:
    """Each grows or shrinks in proportion to its size; what rounding leaves goes to the largest."""
    most = view.replicas + view.surge if view.replicas else 0
    left = most - sum(map(replica_sets.spec_replicas, active))
    ordered = sorted(active, key=replica_sets.spec_replicas, reverse=True)
    sizes = []
    for found in ordered:
        size = replica_sets.spec_replicas(found)
        before = replica_sets.most_of(found) or sum(map(replica_sets.spec_replicas, active))
        change = round(size * most / before) - size
        change = min(change, left) if left > 0 else max(change, left)
        sizes.append(size + change)
        left -= change
    sizes[0] = max(0, sizes[0] + left)
    return [Scaling(found, size) for found, size in zip(ordered, sizes, strict=True)]


def _is_saturated(view: View) -> bool:
    assert view.new is not None
    size = replica_sets.spec_replicas(view.new)
    return size == view.replicas == replica_sets.desired_of(view.new) == replica_sets.available_replicas(view.new)


def _is_due(view: View, scaling: Scaling) -> bool:
    # Also where only the remembered size is old: it would look like a rescaling for ever.
    is_remembered = replica_sets.desired_of(scaling.replica_set) == view.replicas
    return not is_remembered or bool(_changes([scaling]))


def _changes(scalings: Sequence[Scaling]) -> list[Scaling]:
    return [scaling for scaling in scalings if scaling.replicas != replica_sets.spec_replicas(scaling.replica_set)]
