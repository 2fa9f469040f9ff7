"""Which nodes a pod wants by their labels and names: node selector and node affinity. Pure.

Used by the scheduler and, as on a real cluster, by the DaemonSet controller.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.objects import selectors


def is_wanted(pod_spec: Mapping[str, Any], node: Manifest) -> bool:
    """Whether the node passes the pod's node selector and its required node affinity."""
    labels = selectors.labels_of(node)
    wanted = pod_spec.get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    required = _node_affinity(pod_spec).get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or any(_is_term_match(term, node) for term in required["nodeSelectorTerms"])


def preference(pod_spec: Mapping[str, Any], node: Manifest) -> int:
    """Sum of the weights of the preferred terms that the node passes."""
    preferred = _node_affinity(pod_spec).get("preferredDuringSchedulingIgnoredDuringExecution") or []
    return sum(int(term["weight"]) for term in preferred if _is_term_match(term["preference"], node))


def pinned_names(pod_spec: Mapping[str, Any]) -> frozenset[str] | None:
    """The only node names that the pod can go to when every required term names some; None when it is not pinned."""
    required = _node_affinity(pod_spec).get("requiredDuringSchedulingIgnoredDuringExecution")
    terms = required["nodeSelectorTerms"] if required else []
    names = [_names_of(term) for term in terms]
    if not names or any(name is None for name in names):
        return None
    return frozenset().union(*(name for name in names if name is not None))


def _node_affinity(pod_spec: Mapping[str, Any]) -> Mapping[str, Any]:
    return (pod_spec.get("affinity") or {}).get("nodeAffinity") or {}


def _names_of(term: Mapping[str, Any]) -> frozenset[str] | None:
    fields = [field for field in term.get("matchFields") or [] if field["operator"] == "In"]
    return frozenset.intersection(*(frozenset(field["values"]) for field in fields)) if fields else None


def _is_term_match(term: Mapping[str, Any], node: Manifest) -> bool:
    expressions = term.get("matchExpressions") or []
    fields = term.get("matchFields") or []
    if not expressions and not fields:
        return False  # an empty term takes nothing, unlike an empty label selector
    named = {"metadata.name": node["metadata"]["name"]}
    labels = selectors.labels_of(node)
    # Terms are written like label selectors, with numbers besides.
    return selectors.is_match({"matchExpressions": expressions}, labels) and selectors.is_match(
        {"matchExpressions": fields}, named
    )
