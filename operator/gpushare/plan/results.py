"""What has become of a policy that is followed, by everything that a pass knows. Called by `build`; told by `status`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpushare import names
from gpushare.api.clusterpolicy import ClusterPolicy
from gpushare.domain import manifests
from gpushare.domain.conditions import Condition
from gpushare.domain.manifests import ObjectKey
from gpushare.plan import assignments, components, conflicts, rollouts, status, wording
from gpushare.plan.catalogs import Catalog
from gpushare.plan.components import Built
from gpushare.plan.fleet import Fleet
from gpushare.plan.snapshot import Snapshot
from gpushare.plan.status import Outcome


def build_outcome(snapshot: Snapshot, policy: ClusterPolicy, catalog: Catalog, whole: Fleet, built: Built) -> Outcome:
    """How the policy fares: what failed, what is not there yet, or that everything is as it should be."""
    unmanaged = status.unmanaged(policy.unmanaged(), built.notes)
    if not policy.is_enabled("device_plugin"):
        return _ready(snapshot, whole, (*status.switched_off(), status.conflict(()), unmanaged))
    verdict = assignments.build_verdict(catalog, whole.assigned)
    summary = rollouts.summarise(whole.expected)
    left_to_others = conflicts.find_others(snapshot, whole.contested)
    others = (
        status.config_valid(verdict, catalog.title if catalog.name else ""),
        status.rolled_out(summary),
        status.conflict(left_to_others, reason="LeftToOthers"),
        unmanaged,
    )
    state = components.STATES[components.DEVICE_PLUGIN]
    if broken := _broken(built, snapshot.failures):
        return status.failed(broken, others)
    reasons = [] if built.component is None else _lacks(snapshot, names.DAEMONSET_DEVICE_PLUGIN, len(whole.expected))
    reasons += [refusal.text for refusal in verdict.refusals]
    reasons += [*summary.refused, *summary.held, *summary.waiting]
    # On how many nodes it should run depends on what their agents serve; known here is only what it lacks on those.
    lacks_mps = _lacks(snapshot, names.DAEMONSET_MPS, 0) if whole.uses_mps and built.component is not None else []
    if reasons or lacks_mps:
        states = [state] if reasons else []
        states += [components.STATES[components.MPS]] if lacks_mps else []
        return status.not_ready(states, [*reasons, *lacks_mps], others)
    return _ready(snapshot, whole, others)


def _broken(built: Built, failures: Mapping[str, str]) -> list[str]:
    """What could not be done, under the names that NVIDIA's operator has for it."""
    texts: dict[str, list[str]] = {}
    own = components.STATES[components.DEVICE_PLUGIN]
    for problem in built.problems:
        texts.setdefault(own, []).append(str(problem))
    for part, text in sorted(failures.items()):
        texts.setdefault(components.STATES.get(part, own), []).append(text)
    return [f"Failed to reconcile {state}: {wording.joined(found)}" for state, found in texts.items()]


def _ready(snapshot: Snapshot, whole: Fleet, others: Iterable[Condition]) -> Outcome:
    if whole.gpu_nodes:
        return status.succeeded(status.RECONCILED, others)
    discovered = any(node.discovered for node in snapshot.nodes)
    return status.succeeded(status.NO_GPU_NODES if discovered else status.NFD_LABELS_MISSING, others)


def _lacks(snapshot: Snapshot, daemonset: str, expected: int) -> list[str]:
    key = ObjectKey(manifests.DAEMON_SET, daemonset, snapshot.settings.namespace)
    live = next((item.rollout for item in snapshot.objects if item.key == key and item.managed), None)
    text = rollouts.describe_daemonset(key, live, expected)
    if text and live is None and key in snapshot.lost_objects:
        return [f"{key} is gone, and is not made again: see Conflict"]
    return [text] if text else []
