"""Events before they are posted: what is to be told of which object. Decided in `plan`, `scheduler`, posted by `kube.events`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gpushare.domain.manifests import ObjectKey

CLUSTER_EVENTS: Final = "default"
"""Where Kubernetes keeps the Events of objects without a namespace; `kubectl describe` looks nowhere else."""


class EventType(StrEnum):
    """The two that Kubernetes knows."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventNote:
    """One Event to post."""

    regarding: ObjectKey
    uid: str
    """Empty where the object does not exist, or is only known by name."""
    reason: str
    type: EventType
    message: str

    @property
    def namespace(self) -> str:
        """Where the Event itself is."""
        return self.regarding.namespace or CLUSTER_EVENTS

    @property
    def says(self) -> tuple[str, EventType, str]:
        """What a person reads."""
        return self.reason, self.type, self.message
