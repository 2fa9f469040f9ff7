"""Server-side apply, and the bookkeeping of who owns which field for every other write.

The rules are those of Kubernetes' structured merge: an applier owns what it applies; what it no longer applies goes
unless another applier or updater owns it; values that others own are conflicts; every other write takes what it changes.
Called by the write path with objects that it may share; nothing here changes the stored one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from typing import Final

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import statuses
from gpushare.sandbox.apiserver.objects.jsonvalues import compact
from gpushare.sandbox.apiserver.objects.schemas import Schema
from gpushare.sandbox.apiserver.patching import fieldsets, managed_fields, ownership
from gpushare.sandbox.apiserver.patching.fieldsets import EMPTY, FieldSet
from gpushare.sandbox.apiserver.patching.managed_fields import APPLY, UPDATE, Author, Entries, Entry, Identity
from gpushare.sandbox.apiserver.statuses import Cause

KUBECTL: Final = "kubectl"
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_BEFORE_FIRST_APPLY: Final = "before-first-apply"
_NO_OBJECT: Final[Manifest] = {"metadata": {}}
_STATUS: Final = fieldsets.of_paths(("status",))
_ALL_BUT_STATUS: Final = fieldsets.of_paths(("spec",))
_ALL_BUT_CUSTOM_STATUS: Final = fieldsets.of_paths(("spec",), ("metadata",))


def ignored_fields(*, subresource: str, has_status: bool, custom: bool) -> FieldSet:
    """The fields that a write through a door does not change, so that nobody owns them by it.

    The status subresource of a custom resource lets nothing but status through; that of a built-in kind metadata too.
    """
    if subresource == "status":
        return _ALL_BUT_CUSTOM_STATUS if custom else _ALL_BUT_STATUS
    return _STATUS if has_status else EMPTY


def apply(live: Manifest | None, config: Manifest, schema: Schema, author: Author, *, force: bool = False) -> Manifest:
    """The object after an apply of `config`; equal to `live` when nothing changes.

    Args:
        live: the stored object, or None when it is to be created.
        config: what the manager wants, with its name and without managedFields.
        schema: of the kind.
        author: the manager, and through which subresource it writes.
        force: take fields from other managers rather than refuse.

    Raises:
        ApiError: 409, other managers own fields that would change.
    """
    entries = _entries_before(live, schema, author)
    base = live if live is not None else _NO_OBJECT
    try:
        result = _apply(base, config, schema, entries, author, force=force)
    except _ConflictsError as error:
        # Who changes from `kubectl apply` to `kubectl apply --server-side` keeps what its annotation says it applied.
        allowed = _last_applied_fields(base, schema) if author.manager == KUBECTL else EMPTY
        left = {entry: fieldsets.difference(fields, allowed) for entry, fields in error.conflicts.items()}
        if any(left.values()):
            raise _refusal(entries, left) from None
        result = _apply(base, config, schema, entries, author, force=True)
    if author.manager == KUBECTL:
        _refresh_last_applied(result, config)
    return result


def track_update(old: Manifest | None, new: Manifest, schema: Schema, author: Author) -> None:
    """Writes into `new`, in place, who owns what after a create, a replace or a patch.

    `managedFields` that the client sent count where they are well formed.
    """
    entries = ({} if author.subresource else managed_fields.read(new)) or managed_fields.read(old)
    if old is None or entries:
        base = old if old is not None else _NO_OBJECT
        entries = _after_update(entries, _compare(base, new, schema, author), author, new["apiVersion"])
    managed_fields.write(new, entries.values())


class _ConflictsError(Exception):
    """Fields of others that an apply would change."""

    def __init__(self, conflicts: Mapping[Identity, FieldSet]) -> None:
        super().__init__()
        self.conflicts = conflicts


def _apply(
    base: Manifest, config: Manifest, schema: Schema, entries: Entries, author: Author, *, force: bool
) -> Manifest:
    mine = Entry(
        manager=author.manager, operation=APPLY, api_version=config["apiVersion"], subresource=author.subresource
    )
    former = entries.get(mine.identity, mine)
    others = {identity: entry for identity, entry in entries.items() if identity != mine.identity}
    claimed = ownership.fields_of(config, schema)
    owned = reduce(fieldsets.union, (entry.fields for entry in others.values()), claimed)
    merged = _prune(ownership.merge(base, config, schema), former.fields, owned, schema)
    comparison = _compare(base, merged, schema, author)
    conflicts = _conflicts(others, comparison.written)
    if conflicts and not force:
        raise _ConflictsError(conflicts)
    after = _without(others, comparison)
    fields = fieldsets.ordered(fieldsets.without(fieldsets.without(claimed, managed_fields.UNTRACKED), author.ignored))
    # Only a change of the object counts as one: whoever applies what is there already owns it without a time.
    after[mine.identity] = replace(mine, fields=fields, time=former.time if comparison.is_same else author.now)
    # An object without anything to own (a bare ServiceAccount) is new all the same.
    result = dict(base if comparison.is_same and base is not _NO_OBJECT else merged)
    result["metadata"] = dict(result["metadata"])
    managed_fields.write(result, after.values())
    return result


def _entries_before(live: Manifest | None, schema: Schema, author: Author) -> Entries:
    """The owners so far; where nobody was tracked, one entry that owns all that is there."""
    entries = managed_fields.read(live)
    if live is None or entries:
        return entries
    everything = _compare(_NO_OBJECT, live, schema, author)
    return _after_update({}, everything, replace(author, manager=_BEFORE_FIRST_APPLY), live["apiVersion"])


def _compare(old: Manifest, new: Manifest, schema: Schema, author: Author) -> ownership.Comparison:
    return ownership.compare(old, new, schema).without(managed_fields.UNTRACKED).without(author.ignored)


def _prune(merged: Manifest, former: FieldSet, owned: FieldSet, schema: Schema) -> Manifest:
    """`merged` without what the applier owned before and nobody owns any more.

    Structs on the way count as owned with what is in them: so an emptied one goes, and one in which somebody still owns
    something never does.
    """
    if not former:
        return merged
    gone = fieldsets.difference(ownership.with_named_fields(former, schema), ownership.with_named_fields(owned, schema))
    pruned: Manifest = ownership.remove(merged, gone, schema)
    return pruned


def _conflicts(others: Entries, written: FieldSet) -> dict[Identity, FieldSet]:
    touched = {identity: fieldsets.intersection(entry.fields, written) for identity, entry in others.items()}
    return {identity: fields for identity, fields in touched.items() if fields}


def _without(entries: Entries, comparison: ownership.Comparison) -> dict[Identity, Entry]:
    """The entries without what somebody else has now written or removed; those that own nothing any more go."""
    result = {}
    for identity, entry in entries.items():
        fields = fieldsets.difference(fieldsets.difference(entry.fields, comparison.written), comparison.removed)
        if fields:
            result[identity] = entry if fields == entry.fields else replace(entry, fields=fields)
    return result


def _after_update(entries: Entries, comparison: ownership.Comparison, author: Author, api_version: str) -> Entries:
    mine = Entry(
        manager=author.manager, operation=UPDATE, api_version=api_version, subresource=author.subresource,
        time=author.now,
    )  # fmt: skip
    after = _without(entries, comparison)
    former = entries.get(mine.identity, mine)
    fields = fieldsets.union(after.get(mine.identity, mine).fields, comparison.written)
    if fields:
        after[mine.identity] = former if fields == former.fields else replace(mine, fields=fieldsets.ordered(fields))
    return after


def _last_applied_fields(live: Manifest, schema: Schema) -> FieldSet:
    text = (live["metadata"].get("annotations") or {}).get(LAST_APPLIED)
    try:
        applied = json.loads(text) if text else {}
    except ValueError:
        return EMPTY
    return ownership.fields_of(applied, schema)


def _refresh_last_applied(result: Manifest, config: Manifest) -> None:
    """Keeps the annotation of client-side apply true for those who go back to it, as long as it is there."""
    annotations = result["metadata"].get("annotations") or {}
    if LAST_APPLIED not in annotations:
        return
    applied = {**config, "metadata": dict(config["metadata"])}
    if "annotations" in applied["metadata"]:
        kept = {name: value for name, value in config["metadata"]["annotations"].items() if name != LAST_APPLIED}
        applied["metadata"]["annotations"] = kept
    result["metadata"]["annotations"] = {**annotations, LAST_APPLIED: f"{compact(applied)}\n"}


def _refusal(entries: Entries, conflicts: Mapping[Identity, FieldSet]) -> statuses.ApiError:
    found = {
        _spoken(entries[identity]): list(fieldsets.paths(fields)) for identity, fields in conflicts.items() if fields
    }
    causes = [
        Cause("FieldManagerConflict", path, f"conflict with {who}") for who, paths in found.items() for path in paths
    ]
    if len(causes) == 1:
        return statuses.apply_conflict(f"Apply failed with 1 conflict: {causes[0].message}: {causes[0].field}", causes)
    lines = [
        line for who in sorted(found) for line in (f"conflicts with {who}:", *(f"- {path}" for path in found[who]))
    ]
    return statuses.apply_conflict(f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines), causes)


def _spoken(entry: Entry) -> str:
    who = f'"{entry.manager}"'
    if entry.subresource:
        who += f' with subresource "{entry.subresource}"'
    return f"{who} using {entry.api_version}" if entry.operation == UPDATE else who
