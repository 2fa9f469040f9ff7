"""What a scheduler says about a pod that fits nowhere, word for word as Kubernetes 1.36 does. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.scheduling.filtering import Refusal

_NO_NODES = "no nodes available to schedule pods"
_HOPELESS = "Preemption is not helpful for scheduling"
_NO_VICTIMS = "No preemption victims found for incoming pod"


def build_message(pod: Manifest, refused: Mapping[str, Refusal], *, preempts: bool = False) -> str:
    """The message of the event and of the condition, given why each node of the cluster refuses.

    Where pods are evicted for its sake, nothing is said of that.
    """
    if not refused:
        return _NO_NODES
    head = f"0/{len(refused)} nodes are available:"
    reasons = _count(reason for refusal in refused.values() for reason in refusal.reasons)
    if preempts:
        return f"{head} {reasons}."
    if pod["spec"].get("preemptionPolicy") == "Never":
        preemption = "not eligible due to preemptionPolicy=Never"
    else:
        preemption = f"{head} {_count(_HOPELESS if refusal.is_final else _NO_VICTIMS for refusal in refused.values())}"
    return f"{head} {reasons}. no new claims to deallocate, preemption: {preemption}."


def _count(reasons: Iterable[str]) -> str:
    return ", ".join(sorted(f"{count} {reason}" for reason, count in Counter(reasons).items()))
