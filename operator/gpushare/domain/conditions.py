"""Conditions as Kubernetes knows them, and the rule for their transition times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One `metav1.Condition`."""

    type: str
    status: str
    """`True`, `False` or `Unknown`."""
    reason: str
    message: str = ""
    observed_generation: int | None = None
    last_transition_time: str = ""
    """RFC 3339; filled in by `with_times` from what was there before."""

    def to_json(self) -> dict[str, Any]:
        """The form of the API."""
        body: dict[str, Any] = {
            "type": self.type,
            "status": self.status,
            "reason": self.reason,
            "message": self.message,
            "lastTransitionTime": self.last_transition_time,
        }
        if self.observed_generation is not None:
            body["observedGeneration"] = self.observed_generation
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Condition:
        """Reads the form of the API; missing fields become empty."""
        return cls(
            type=body.get("type", ""),
            status=body.get("status", "Unknown"),
            reason=body.get("reason", ""),
            message=body.get("message", ""),
            observed_generation=body.get("observedGeneration"),
            last_transition_time=body.get("lastTransitionTime", ""),
        )


def with_times(wanted: Iterable[Condition], before: Iterable[Condition], now: str) -> tuple[Condition, ...]:
    """Gives each condition the time of its last change of status: the old one where the status is the same, else `now`."""
    known = {condition.type: condition for condition in before}
    return tuple(
        replace(
            condition,
            last_transition_time=known[condition.type].last_transition_time or now
            if condition.type in known and known[condition.type].status == condition.status
            else now,
        )
        for condition in wanted
    )
