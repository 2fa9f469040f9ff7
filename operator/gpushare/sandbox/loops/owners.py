"""Who controls an object: at most one of its owners. Used by all workload controllers."""

from __future__ import annotations

from typing import Any

from gpushare.domain.manifests import Kind, Manifest
from gpushare.sandbox.loops import caches
from gpushare.sandbox.loops.caches import Key


def build_reference(owner: Manifest, kind: Kind) -> dict[str, Any]:
    """The reference that a controller puts on what it creates for `owner`."""
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def controller_of(manifest: Manifest) -> dict[str, Any] | None:
    """The owner that controls an object, or None."""
    for reference in manifest["metadata"].get("ownerReferences") or []:
        if reference.get("controller"):
            found: dict[str, Any] = reference
            return found
    return None


def is_controlled_by(manifest: Manifest, owner: Manifest) -> bool:
    """Whether `owner`, this very one and not another of its name, controls the object."""
    reference = controller_of(manifest)
    return reference is not None and reference["uid"] == owner["metadata"]["uid"]


def is_orphan(manifest: Manifest) -> bool:
    """Whether nobody controls the object, and it is not on its way out."""
    return controller_of(manifest) is None and not caches.is_terminating(manifest)


def key_of_controller(manifest: Manifest, kind: Kind) -> Key | None:
    """The key of the controlling owner when it is of `kind`."""
    reference = controller_of(manifest)
    if reference is None or (reference["apiVersion"], reference["kind"]) != (kind.api_version, kind.kind):
        return None
    return manifest["metadata"].get("namespace", ""), reference["name"]
