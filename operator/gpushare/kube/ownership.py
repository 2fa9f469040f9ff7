"""Who owns which fields of an object, as `managedFields` says it, handed from one to another. Pure; called by `applying`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpushare.domain.manifests import Manifest

_APPLY = "Apply"


def inherit(manifest: Manifest, manager: str) -> list[dict[str, Any]]:
    """The `managedFields` of an object after `manager` has inherited everything but what belongs to subresources.

    Its next application then removes what it does not want, as if it had applied all that is there.
    """
    entries: list[dict[str, Any]] = manifest["metadata"].get("managedFields") or []
    inherited = [entry for entry in entries if not entry.get("subresource")]
    fields: dict[str, Any] = {}
    for entry in inherited:
        fields = _united(fields, entry.get("fieldsV1") or {})
    ours = {
        "manager": manager,
        "operation": _APPLY,
        "apiVersion": manifest["apiVersion"],
        "time": max((entry["time"] for entry in inherited if "time" in entry), default=None),
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return [ours, *(entry for entry in entries if entry.get("subresource"))]


def _united(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    return {**one, **{key: _united(one.get(key) or {}, below or {}) for key, below in other.items()}}
