"""What a Node should carry besides what its kubelet and people write: taints, labels, addresses for pods. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.objects import times
from gpushare.sandbox.scheduling import taints

_ANNOTATION_TTL: Final = "node.alpha.kubernetes.io/ttl"
_OLD_LABELS: Final = {
    "kubernetes.io/os": "beta.kubernetes.io/os",
    "kubernetes.io/arch": "beta.kubernetes.io/arch",
}
_BY_CONDITION: Final[Mapping[tuple[str, str], str]] = {
    ("Ready", "False"): taints.NOT_READY,
    ("Ready", "Unknown"): taints.UNREACHABLE,
    ("MemoryPressure", "True"): taints.MEMORY_PRESSURE,
    ("DiskPressure", "True"): taints.DISK_PRESSURE,
    ("PIDPressure", "True"): taints.PID_PRESSURE,
    ("NetworkUnavailable", "True"): taints.NETWORK_UNAVAILABLE,
}
_KEEPING_AWAY: Final = {*_BY_CONDITION.values(), taints.UNSCHEDULABLE}
_DRIVING_OUT: Final = {taints.NOT_READY, taints.UNREACHABLE}


def build_repaired(node: Manifest, networks: Collection[str], now: float) -> Manifest | None:
    """The node as it should be at `now`; None when it is. `networks` are the pod networks of the other nodes."""
    metadata = {
        **node["metadata"],
        "annotations": {_ANNOTATION_TTL: "0", **(node["metadata"].get("annotations") or {})},
    }
    spec = dict(node.get("spec", {}))
    if not spec.get("podCIDR"):
        spec["podCIDR"] = _free_network(networks)
        spec["podCIDRs"] = [spec["podCIDR"]]
    # Until the kubelet has spoken, the taint that the API server gives to new nodes stays.
    if condition_of(node, "Ready"):
        metadata["labels"] = _with_old_labels(metadata.get("labels") or {})
        wanted = _build_taints(node, now)
        spec.pop("taints", None)
        if wanted:
            spec["taints"] = wanted
    repaired = {**node, "metadata": metadata, "spec": spec}
    return repaired if repaired != node else None


def condition_of(node: Manifest, kind: str) -> dict[str, Any]:
    """One condition of a node; empty when there is none."""
    for condition in node.get("status", {}).get("conditions") or []:
        if condition["type"] == kind:
            return dict(condition)
    return {}


def _build_taints(node: Manifest, now: float) -> list[dict[str, Any]]:
    wanted = {(key, taints.NO_SCHEDULE) for key in _keys_of(node)}
    wanted |= {(key, taints.NO_EXECUTE) for key in _keys_of(node) & _DRIVING_OUT}
    kept = [
        taint for taint in taints.taints_of(node) if not _is_ours(taint) or (taint["key"], taint["effect"]) in wanted
    ]
    present = {(taint["key"], taint["effect"]) for taint in kept}
    added = [{"key": key, "effect": effect} for key, effect in sorted(wanted - present)]
    time = times.seconds_text(now)
    return kept + [taint | {"timeAdded": time} for taint in added]


def _keys_of(node: Manifest) -> set[str]:
    conditions = node.get("status", {}).get("conditions") or []
    keys = {_BY_CONDITION.get((condition["type"], condition["status"])) for condition in conditions}
    if node.get("spec", {}).get("unschedulable"):
        keys.add(taints.UNSCHEDULABLE)
    return {key for key in keys if key is not None}


def _is_ours(taint: Mapping[str, Any]) -> bool:
    if taint["effect"] == taints.NO_EXECUTE:
        return taint["key"] in _DRIVING_OUT
    return taint["effect"] == taints.NO_SCHEDULE and taint["key"] in _KEEPING_AWAY


def _with_old_labels(labels: Mapping[str, str]) -> dict[str, str]:
    return {**labels, **{old: labels[new] for new, old in _OLD_LABELS.items() if new in labels}}


def _free_network(taken: Collection[str]) -> str:
    return next(
        network for number in range(2**16) if (network := f"10.{244 + number // 256}.{number % 256}.0/24") not in taken
    )
