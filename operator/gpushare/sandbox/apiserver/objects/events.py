"""Events in their two forms: `v1`, in which they are stored, and `events.k8s.io/v1`, a second view of the same."""

from __future__ import annotations

from collections.abc import Mapping

from gpushare.domain.manifests import Manifest

_TO_NEW: Mapping[str, str] = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "count": "deprecatedCount",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
}
_TO_OLD = {new: old for old, new in _TO_NEW.items()}


def show(stored: Manifest) -> Manifest:
    """A core event as `events.k8s.io/v1`."""
    return {_TO_NEW.get(name, name): value for name, value in stored.items()} | {"apiVersion": "events.k8s.io/v1"}


def read(shown: Manifest) -> Manifest:
    """An `events.k8s.io/v1` event as it is stored."""
    return {_TO_OLD.get(name, name): value for name, value in shown.items()} | {"apiVersion": "v1"}


def stored_field(shown: str) -> str:
    """The path of a field of an `events.k8s.io/v1` event in its stored form."""
    first, dot, rest = shown.partition(".")
    return f"{_TO_OLD.get(first, first)}{dot}{rest}"
