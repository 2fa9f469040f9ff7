"""What every object of ours carries besides its own content: labels, owner, hash. Called after `templates.render`."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterable

from gpushare import names
from gpushare.domain.manifests import Manifest, ObjectKey


def decorate(
    rendered: Iterable[Manifest], *, component: str, owner: ObjectKey | None = None, owner_uid: str = ""
) -> list[Manifest]:
    """Adds labels, owner and hash to the objects themselves, and nothing to pod templates: that would restart pods.

    Args:
        rendered: from the templates; not changed.
        component: whose templates.
        owner: the object that everything goes with.
        owner_uid: its uid.
    """
    return [_decorated(manifest, component, owner, owner_uid) for manifest in rendered]


def _decorated(manifest: Manifest, component: str, owner: ObjectKey | None, owner_uid: str) -> Manifest:
    manifest = copy.deepcopy(manifest)
    metadata = manifest["metadata"]
    metadata["labels"] = {
        **metadata.get("labels", {}),
        names.LABEL_COMPONENT: component,
        names.LABEL_MANAGED_BY: names.CONTROLLER,
    }
    if owner is not None and _may_own(owner, metadata.get("namespace", "")):
        metadata["ownerReferences"] = [
            {
                "apiVersion": owner.kind.api_version,
                "kind": owner.kind.kind,
                "name": owner.name,
                "uid": owner_uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
    metadata["annotations"] = {**metadata.get("annotations", {}), names.ANNOTATION_HASH: hash_of(manifest)}
    return manifest


def _may_own(owner: ObjectKey, namespace: str) -> bool:
    # The garbage collector deletes what names an owner of another namespace.
    return not owner.kind.namespaced or owner.namespace == namespace


def hash_of(manifest: Manifest) -> str:
    """16 hex digits that change when anything in the manifest does; the order of keys means nothing."""
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
