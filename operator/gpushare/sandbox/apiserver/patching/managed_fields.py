"""`metadata.managedFields`: the entries, their order, and what is never tracked. Called by `applying`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.patching import fieldsets
from gpushare.sandbox.apiserver.patching.fieldsets import FieldSet

Identity: TypeAlias = tuple[str, str, str, str]

APPLY: Final = "Apply"
UPDATE: Final = "Update"
_UNTRACKED_METADATA: Final = (
    "creationTimestamp", "generation", "managedFields", "name", "namespace", "resourceVersion", "selfLink", "uid",
)  # fmt: skip
UNTRACKED: Final = fieldsets.of_paths(("apiVersion",), ("kind",), *(("metadata", name) for name in _UNTRACKED_METADATA))
"""Fields that name an object or belong to the server; nobody owns them."""


@dataclass(frozen=True, slots=True)
class Author:
    """Who writes, through which subresource, when."""

    manager: str
    subresource: str
    now: str
    """RFC 3339 with seconds, as `2026-11-29T12:00:00Z`."""
    ignored: FieldSet = field(default_factory=dict)
    """Fields that this way of writing does not let through, so that nobody comes to own them by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What one manager owns by one way of writing."""

    manager: str
    operation: str
    api_version: str
    subresource: str = ""
    time: str = ""
    fields: FieldSet = field(default_factory=dict)

    @property
    def identity(self) -> Identity:
        """Entries with the same identity are one; an applier stays the same when it changes to another version."""
        version = "" if self.operation == APPLY else self.api_version
        return self.manager, self.operation, version, self.subresource


Entries: TypeAlias = Mapping[Identity, Entry]


def read(obj: Mapping[str, Any] | None) -> Entries:
    """The entries of an object; where one is not well formed there are none."""
    raw = (obj or {}).get("metadata", {}).get("managedFields") or ()
    try:
        return {entry.identity: entry for entry in map(_read_entry, raw)}
    except (KeyError, TypeError, AttributeError):
        return {}


def is_unchanged(new: Manifest, old: Manifest) -> bool:
    """Whether two states of an object are the same; times of entries alone are no difference.

    An apply of an empty map owns it and has a new time, while the map itself is not stored.
    """
    if new == old:
        return True
    return _without_times(new) == _without_times(old)


def _without_times(obj: Manifest) -> Manifest:
    metadata = obj["metadata"]
    entries = [{**entry, "time": ""} for entry in metadata.get("managedFields") or ()]
    return {**obj, "metadata": {**metadata, "managedFields": entries}}


def write(obj: Manifest, entries: Iterable[Entry]) -> None:
    """Puts the entries into an object, in place, in a real server's order; none at all where nobody owns anything."""
    metadata = obj.setdefault("metadata", {})
    kept = sorted((entry for entry in entries if entry.fields), key=_order)
    if kept:
        metadata["managedFields"] = [_write_entry(entry) for entry in kept]
    else:
        metadata.pop("managedFields", None)


def _order(entry: Entry) -> tuple[str, str, str, str, str]:
    return entry.operation, entry.time, entry.manager, entry.api_version, entry.subresource


def _read_entry(raw: Mapping[str, Any]) -> Entry:
    return Entry(
        manager=raw["manager"],
        operation=raw["operation"],
        api_version=raw["apiVersion"],
        subresource=raw.get("subresource", ""),
        time=raw.get("time", ""),
        fields=raw["fieldsV1"],
    )


def _write_entry(entry: Entry) -> Manifest:
    raw: Manifest = {"manager": entry.manager, "operation": entry.operation, "apiVersion": entry.api_version}
    if entry.time:
        raw["time"] = entry.time
    raw |= {"fieldsType": "FieldsV1", "fieldsV1": entry.fields}
    if entry.subresource:
        raw["subresource"] = entry.subresource
    return raw
