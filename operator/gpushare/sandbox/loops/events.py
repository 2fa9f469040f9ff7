"""Events as a real cluster has them after its clients have merged them: which one to write, which one to count up. Pure.

Two shapes: controllers write the older one (count, first and last time), the scheduler the newer one (event time, series).
Called by `recording`. Figures and texts are those of Kubernetes' own clients.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.objects import times

_SIMILAR_MAX = 10
"""From this many messages on, events that differ only in their message become one."""
_SIMILAR_SECONDS = 600.0
_BURST = 25
_REFILL_SECONDS = 300.0
"""A controller may write this many events on one object at once, and one more in each such time."""
_SERIES_SECONDS = 360.0
_COMBINED = "(combined from similar events): "


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What a controller wants said about an object."""

    about: Manifest
    type: str
    reason: str
    message: str
    action: str = ""
    """Only in the newer shape: what was tried, `Binding`, `Scheduling`."""

    @property
    def namespace(self) -> str:
        """Where the event lies; those of cluster-scoped objects lie in `default`."""
        return str(self.about["metadata"].get("namespace") or "default")


@dataclass(frozen=True, slots=True)
class Create:
    """A new event."""

    manifest: Manifest


@dataclass(frozen=True, slots=True)
class Repeat:
    """A merge patch on an event that is there already."""

    namespace: str
    name: str
    body: dict[str, Any]


Write: TypeAlias = Create | Repeat
_Identity: TypeAlias = tuple[str, ...]


@dataclass(slots=True)
class _Written:
    name: str
    count: int
    last: float


@dataclass(slots=True)
class _Similar:
    messages: set[str]
    last: float


@dataclass(slots=True)
class _Bucket:
    tokens: float
    last: float


@dataclass(slots=True)
class CountedEvents:
    """The events of one controller, as `record.EventRecorder` of Kubernetes merges them."""

    component: str
    _written: dict[_Identity, _Written] = field(default_factory=dict)
    _similar: dict[_Identity, _Similar] = field(default_factory=dict)
    _buckets: dict[_Identity, _Bucket] = field(default_factory=dict)

    def build_write(self, event: Event, now: float) -> Write | None:
        """What to write at `now` (seconds since 1970); None when this controller has said too much about the object."""
        kind = _identity(event)
        message, identity = self._combine(kind, event.message, now)
        if not self._spend(kind[:4], now):
            return None
        known = self._written.get(identity)
        if known is not None:
            known.count += 1
            body = {"count": known.count, "lastTimestamp": times.seconds_text(now), "message": message}
            return Repeat(event.namespace, known.name, body)
        name = _name(event, now)
        self._written[identity] = _Written(name, 1, now)
        return Create(self._manifest(event, name, message, now))

    def _combine(self, kind: _Identity, message: str, now: float) -> tuple[str, _Identity]:
        similar = self._similar.get(kind)
        if similar is None or now - similar.last > _SIMILAR_SECONDS:
            similar = self._similar[kind] = _Similar(set(), now)
        similar.last = now
        similar.messages.add(message)
        if len(similar.messages) < _SIMILAR_MAX:
            return message, (*kind, message)
        # Forgets one, so that the next new message is combined too while an old one still counts as itself.
        similar.messages.discard(message)
        return _COMBINED + message, kind

    def _spend(self, about: _Identity, now: float) -> bool:
        bucket = self._buckets.setdefault(about, _Bucket(_BURST, now))
        bucket.tokens = min(_BURST, bucket.tokens + (now - bucket.last) / _REFILL_SECONDS)
        bucket.last = now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True

    def _manifest(self, event: Event, name: str, message: str, now: float) -> Manifest:
        return _build(event, name) | {
            "message": message,
            "source": {"component": self.component},
            "firstTimestamp": times.seconds_text(now),
            "lastTimestamp": times.seconds_text(now),
            "count": 1,
            "reportingComponent": self.component,
            "reportingInstance": "",
        }


@dataclass(slots=True)
class SerialEvents:
    """The events of the scheduler, as the newer `events.EventRecorder` of Kubernetes merges them."""

    component: str
    instance: str
    _written: dict[_Identity, _Written] = field(default_factory=dict)

    def build_write(self, event: Event, now: float) -> Write:
        """What to write at `now` (seconds since 1970)."""
        identity = (*_identity(event), event.message)
        known = self._written.get(identity)
        if known is not None and now - known.last < _SERIES_SECONDS:
            known.count += 1
            known.last = now
            series = {"count": known.count, "lastObservedTime": times.micro_text(now)}
            return Repeat(event.namespace, known.name, {"series": series})
        name = _name(event, now)
        self._written[identity] = _Written(name, 1, now)
        return Create(
            _build(event, name)
            | {
                "message": event.message,
                "source": {},
                "firstTimestamp": None,
                "lastTimestamp": None,
                "eventTime": times.micro_text(now),
                "action": event.action,
                "reportingComponent": self.component,
                "reportingInstance": self.instance,
            }
        )


def _identity(event: Event) -> _Identity:
    metadata = event.about["metadata"]
    return (event.about["kind"], event.namespace, metadata["name"], metadata["uid"], event.type, event.reason)


def _name(event: Event, now: float) -> str:
    return f"{event.about['metadata']['name']}.{int(now * 1_000_000_000):016x}"


def _build(event: Event, name: str) -> Manifest:
    metadata = event.about["metadata"]
    involved = {
        "apiVersion": event.about["apiVersion"],
        "kind": event.about["kind"],
        "name": metadata["name"],
        "namespace": metadata.get("namespace", ""),
        "uid": metadata["uid"],
        "resourceVersion": metadata.get("resourceVersion", ""),
    }
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": event.namespace},
        "involvedObject": {key: value for key, value in involved.items() if value},
        "type": event.type,
        "reason": event.reason,
    }
