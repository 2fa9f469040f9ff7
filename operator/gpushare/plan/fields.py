"""Fields of a policy that its kind does not have: an API server drops them, which only kubectl says. Used by `validation`."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from gpushare.domain.manifests import Manifest
from gpushare.errors import Problem


def schema_of(definition: Manifest) -> Mapping[str, Any]:
    """What the `spec` of a kind may hold, as its definition says. Ours have one version."""
    found: Mapping[str, Any] = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return found


def find_unknown(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[Problem]:
    """Each field that the schema does not know, with the one that may be meant. `path`: where the value stands."""
    known = schema.get("properties")
    if isinstance(value, Mapping) and known:
        for key, below in value.items():
            place = f"{path}.{key}"
            if key in known:
                yield from find_unknown(below, known[key], place)
            else:
                meant = difflib.get_close_matches(str(key), known, 1)
                hint = f'; did you mean "{meant[0]}"?' if meant else ""
                yield Problem(path=place, message=f"unknown field, which the API server drops{hint}")
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from find_unknown(item, schema.get("items", {}), f"{path}[{position}]")
