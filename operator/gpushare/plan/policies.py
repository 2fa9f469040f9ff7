"""Which ClusterPolicy counts. Called by `build`, and by the controller to know which ConfigMap to look for."""

from __future__ import annotations

from dataclasses import dataclass

from gpushare.api.clusterpolicy import parse_policy
from gpushare.plan import wording
from gpushare.plan.snapshot import Policy, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One policy is acted upon, the others wait."""

    active: Policy | None
    """None: there is no policy, and what the operator made goes."""
    ignored: tuple[Policy, ...] = ()
    """In the order in which they would take over."""


def choose(snapshot: Snapshot) -> Choice:
    """The oldest policy counts, of equally old ones the first by name, as in NVIDIA's operator; with `--policy`, only that.

    A policy that is being deleted counts no more: the next takes over at once.
    """
    wanted = snapshot.settings.policy
    candidates = sorted(
        (policy for policy in snapshot.policies if not policy.deleting and wanted in {"", policy.name}),
        key=lambda policy: (policy.created, policy.name),
    )
    return Choice(active=candidates[0] if candidates else None, ignored=tuple(candidates[1:]))


def describe_misnamed(snapshot: Snapshot) -> str:
    """That `--policy` names none that there is, and what runs belongs to one that is there; empty where it is not so.

    Whoever misspells a name must not lose all agents by it.
    """
    owners = {item.controller for item in snapshot.objects if item.managed}
    others = [policy.name for policy in snapshot.policies if policy.uid in owners and not policy.deleting]
    if not others or choose(snapshot).active is not None:
        return ""
    return (
        f'there is no ClusterPolicy "{snapshot.settings.policy}", as --policy (chart value policy) names it, and what runs '
        f"belongs to {wording.listed(others)}: nothing is changed until that one is deleted, or the other is there"
    )


def missing_config_map(snapshot: Snapshot) -> str:
    """Name of the ConfigMap that the active policy names and the operator's namespace lacks; empty when all is there.

    The controller then looks for that name in all namespaces and fills `Snapshot.config_maps_elsewhere`.
    """
    active = choose(snapshot).active
    policy = parse_policy({"spec": active.spec}).policy if active is not None else None
    name = policy.device_plugin.config.name if policy is not None else ""
    return "" if name in {config_map.name for config_map in snapshot.config_maps} else name
