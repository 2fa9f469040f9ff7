"""The history of a DaemonSet: one ControllerRevision a template, numbered; `kubectl rollout history` and `undo` read it. Pure."""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from gpushare.domain import manifests
from gpushare.domain.manifests import Manifest
from gpushare.sandbox.loops import owners
from gpushare.sandbox.workloads import templates
from gpushare.sandbox.workloads.daemonsets.placing import LABEL_HASH


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What the history of a DaemonSet should become."""

    current_hash: str
    create: Manifest | None = None
    renumber: Manifest | None = None
    """A template that was used before is the newest again: what `kubectl rollout undo` leads to."""


def build_history(daemon_set: Manifest, revisions: Sequence[Manifest]) -> History:
    """Finds the revision of the current template among those that the DaemonSet has, or makes one."""
    data = _build_data(daemon_set)
    newest = max((revision["revision"] for revision in revisions), default=0)
    same = [revision for revision in revisions if revision["data"] == data]
    if not same:
        created = _build_revision(daemon_set, data, newest + 1)
        return History(current_hash=created["metadata"]["labels"][LABEL_HASH], create=created)
    current = max(same, key=lambda revision: revision["revision"])
    revision_hash = current["metadata"]["labels"][LABEL_HASH]
    if current["revision"] == newest:
        return History(current_hash=revision_hash)
    return History(current_hash=revision_hash, renumber=copy.deepcopy(current) | {"revision": newest + 1})


def build_excess(daemon_set: Manifest, revisions: Sequence[Manifest], used: Collection[str]) -> list[Manifest]:
    """The oldest revisions beyond `revisionHistoryLimit`; those whose hash some pod still has are not counted."""
    limit = daemon_set["spec"].get("revisionHistoryLimit", 10)
    unused = [revision for revision in revisions if revision["metadata"]["labels"].get(LABEL_HASH) not in used]
    unused.sort(key=lambda revision: revision["revision"])
    return unused[: max(0, len(unused) - limit)]


def _build_data(daemon_set: Manifest) -> dict[str, Any]:
    """A strategic merge patch that brings this template back."""
    return {"spec": {"template": {**daemon_set["spec"]["template"], "$patch": "replace"}}}


def _build_revision(daemon_set: Manifest, data: dict[str, Any], number: int) -> Manifest:
    metadata, template = daemon_set["metadata"], daemon_set["spec"]["template"]
    collisions = daemon_set.get("status", {}).get("collisionCount") or 0
    revision_hash = templates.build_hash(template, collisions)
    labels = (template.get("metadata") or {}).get("labels") or {}
    return {
        "apiVersion": manifests.CONTROLLER_REVISION.api_version,
        "kind": manifests.CONTROLLER_REVISION.kind,
        "metadata": {
            "name": f"{metadata['name']}-{revision_hash}",
            "namespace": metadata["namespace"],
            "labels": {**labels, LABEL_HASH: revision_hash},
            "annotations": dict(metadata.get("annotations") or {}),
            "ownerReferences": [owners.build_reference(daemon_set, manifests.DAEMON_SET)],
        },
        "data": copy.deepcopy(data),
        "revision": number,
    }
