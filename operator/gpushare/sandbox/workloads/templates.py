"""Pod templates: their hash, and the pods made from them. Pure. Used by all workload controllers."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from gpushare.domain.manifests import Kind, Manifest
from gpushare.sandbox.loops import owners

_SAFE = "bcdfghjklmnpqrstvwxz2456789"
"""Letters and digits of Kubernetes' generated names: no vowels, so that no words come out."""
_FNV_OFFSET, _FNV_PRIME, _32_BITS = 2166136261, 16777619, 0xFFFFFFFF


def build_hash(template: Mapping[str, Any], collisions: int = 0) -> str:
    """The short text by which objects and pods of a template are told apart; `collisions` makes another one."""
    text = json.dumps(template, sort_keys=True) + (str(collisions) if collisions else "")
    value = _FNV_OFFSET
    for byte in text.encode():
        value = ((value ^ byte) * _FNV_PRIME) & _32_BITS
    return "".join(_SAFE[ord(digit) % len(_SAFE)] for digit in str(value))


def build_pod(owner: Manifest, kind: Kind, template: Mapping[str, Any], labels: Mapping[str, str]) -> Manifest:
    """A pod of `owner`, with the template's labels and `labels`; the API server gives it its name."""
    given = template.get("metadata") or {}
    metadata: dict[str, Any] = {
        "generateName": f"{owner['metadata']['name']}-",
        "namespace": owner["metadata"]["namespace"],
        "labels": {**(given.get("labels") or {}), **labels},
        "ownerReferences": [owners.build_reference(owner, kind)],
    }
    for copied in ("annotations", "finalizers"):
        if given.get(copied):
            metadata[copied] = copy.deepcopy(given[copied])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": copy.deepcopy(dict(template["spec"]))}


def scaled(value: int | str, total: int, *, round_up: bool) -> int:
    """A number or a percentage of `total`, as `maxUnavailable` and `maxSurge` have it."""
    if isinstance(value, int):
        return value
    if not value.endswith("%"):
        return int(value)
    share = int(value.removesuffix("%")) * total
    return -(-share // 100) if round_up else share // 100
