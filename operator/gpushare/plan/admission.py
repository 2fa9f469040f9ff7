"""Whether a ConfigMap may be stored, where an administrator wants broken configurations refused at `kubectl apply`.

Called by the controller's webhook. It judges only what is meant for sharing, by the code that would judge it afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpushare import names
from gpushare.api.clusterpolicy import parse_policy
from gpushare.domain.manifests import Manifest
from gpushare.plan import policies, reading, validation, wording
from gpushare.plan.snapshot import ConfigMap, Snapshot


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said about a ConfigMap."""

    problems: tuple[str, ...] = ()
    """A line each; with any of them, it is refused."""
    warnings: tuple[str, ...] = ()


def judge(manifest: Manifest, snapshot: Snapshot) -> Verdict:
    """Everything that is wrong with a ConfigMap that the active policy names, or whose label says what it is for.

    Other ConfigMaps are none of our business, and so are those that only another operator's policy names.
    """
    metadata = {"name": "", **manifest["metadata"]}  # one with `generateName` has none yet
    config_map = reading.config_map_of({**manifest, "metadata": metadata})
    labels = metadata.get("labels") or {}
    default = _named_default(config_map.name, snapshot)
    if default is None and labels.get(names.LABEL_SHARING_CONFIG) != "true":
        return Verdict()
    checked = tuple(validation.check_keys(config_map))
    return Verdict(
        problems=tuple(f"{item.title}: {problem}" for item in checked for problem in item.problems),
        warnings=(
            *(f"{item.title}: {warning}" for item in checked for warning in item.warnings),
            *(_missing_keys(config_map, default, snapshot) if default is not None else ()),
        ),
    )


def _named_default(name: str, snapshot: Snapshot) -> str | None:
    """The default of the policy that names this ConfigMap, maybe empty; None: no policy names it."""
    active = policies.choose(snapshot).active
    policy = parse_policy({"spec": active.spec}).policy if active is not None else None
    if policy is None or policy.device_plugin.config.name != name:
        return None
    return policy.device_plugin.config.default


def _missing_keys(config_map: ConfigMap, default: str, snapshot: Snapshot) -> Iterator[str]:
    """What is named and is not there. Only warned of: nodes keep what they have, and labels may come later than keys."""
    keys = {*config_map.data, *config_map.binary}
    if default and default not in keys:
        yield f'the policy names "{default}" as default, which this ConfigMap does not have: nodes keep what they have'
    labelled: dict[str, list[str]] = {}
    for node in snapshot.nodes:
        key = node.labels.get(names.LABEL_CONFIG, "")
        if key and key not in keys:
            labelled.setdefault(key, []).append(node.name)
    for key, nodes in sorted(labelled.items()):
        yield f'{wording.listed(nodes)}: the label names "{key}", which this ConfigMap does not have'
